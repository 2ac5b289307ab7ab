"""The only place that opens, fsyncs, renames and removes files, and so the seam where tests inject faults."""
