import lockgate


@lockgate.function(returns="string")
def sensor_name(code):
    return None if code is None else code.strip().upper().replace("_", "-")
