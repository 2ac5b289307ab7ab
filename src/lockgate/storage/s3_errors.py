"""What S3 and its client say, as errors of ours: by the code of the answer, never by its text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lockgate.errors import ObjectChanged, ObjectMissing, S3Error, S3Unreachable
from lockgate.storage.s3_address import S3Address

_NO_BUCKET = {"NoSuchBucket"}
_MISSING = {"404", "NoSuchKey", "NoSuchUpload", "NotFound"}
_DENIED = {"403", "AccessDenied", "AllAccessDisabled", "AccountProblem", "Forbidden"}
_WHO = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
_ELSEWHERE = {"301", "307", "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"}
_CAME_FIRST = {"412", "PreconditionFailed", "ConditionalRequestConflict"}
_TRY_LATER = {"RequestTimeout", "RequestTimeoutException", "SlowDown", "InternalError", "ServiceUnavailable", "500"}
_TRY_LATER |= {"502", "503", "504", "BadGateway", "GatewayTimeout", "OperationAborted", "Throttling"}


@contextmanager
def explained(doing: str, address: S3Address, permission: str = "") -> Iterator[None]:
    """Turn what boto3 raises into an error that says what could not be done to which object."""
    from botocore import exceptions as boto

    what = f"cannot {doing} {address}"
    try:
        yield
    except boto.ClientError as error:
        raise _answered(what, address, permission, error.response) from error
    except (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError) as error:
        hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or access_key_id of the connection"
        raise S3Error(f"{what}: there are no credentials for S3", code="NoCredentials", hint=hint) from error
    except (boto.HTTPClientError, boto.ResponseStreamingError, boto.IncompleteReadError, OSError) as error:
        raise S3Unreachable(
            f"{what}: S3 did not answer ({_kind(error)})",
            code=_kind(error),
            hint="look whether the endpoint of the connection, or AWS_ENDPOINT_URL, is right and up, then try again",
        ) from error
    except boto.BotoCoreError as error:
        raise S3Error(f"{what}: {_kind(error)}", code=_kind(error), hint="check the connection's settings") from error


def _answered(what: str, address: S3Address, permission: str, response: Any) -> S3Error:
    code = str(response.get("Error", {}).get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    known = {code, str(status)}
    if code in _NO_BUCKET:
        hint = "create the bucket, or correct its name or the endpoint"
        return S3Error(f"{what}: there is no bucket {address.bucket}", code=code, hint=hint)
    if code in _WHO:
        hint = "check the key, the secret and the token; a token may have expired"
        return S3Error(f"{what}: S3 refuses the credentials ({code})", code=code, hint=hint)
    if known & _CAME_FIRST:
        return ObjectChanged(f"{what}: another writer's object is there ({code})", code=code)
    if known & _MISSING:
        return ObjectMissing(f"{what}: it is not there ({code})", code=code)
    if code in _ELSEWHERE:
        hint = "set the connection's region, or AWS_REGION, to that of the bucket"
        return S3Error(f"{what}: the bucket is in another region ({code})", code=code, hint=hint)
    if known & _TRY_LATER or (status >= 500 and status != 501):
        return S3Unreachable(f"{what}: S3 answers {code or status}, after several tries", code=code, hint="try again")
    if known & _DENIED:
        hint = f"allow this user {permission} on it" if permission else "give this user the permissions for it"
        return S3Error(f"{what}: access denied", code=code, hint=hint)
    return S3Error(f"{what}: S3 answers {code or status}", code=code)


def _kind(error: Exception) -> str:
    return type(error).__name__
