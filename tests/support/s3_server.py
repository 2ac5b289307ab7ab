"""S3 over HTTP on this machine: moto's server, with the parts of S3's documented behaviour that it lacks put in front.

moto looks at `If-None-Match` and at what it writes in two steps, while S3 does both at once; it fails with a KeyError
where S3 answers NoSuchUpload; it takes a second completion of an upload for the first, which S3 need not; and it dates
every upload 2010. Faults of a network and of a policy are injected here too: a rule may answer in place of S3, cut the
line before or after S3 has done what was asked, or keep the line silent.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from io import BytesIO
from threading import Event, RLock, Thread
from typing import Any
from urllib.parse import parse_qs

import pytest

Rule = Callable[["Request"], str | None]  # "deny", "cut before", "cut after", "silence", or an error code of S3's


@dataclass(frozen=True)
class Request:
    method: str
    bucket: str
    key: str
    query: dict[str, list[str]]
    headers: dict[str, str]

    @property
    def action(self) -> str:
        """What is asked, in the words of S3's reference."""
        kind = {"POST": "Complete", "DELETE": "Abort", "PUT": "UploadPart", "GET": "ListParts"}
        if "uploadId" in self.query:
            return kind.get(self.method, self.method)
        if "uploads" in self.query:
            return "ListUploads" if self.method == "GET" else "CreateUpload"
        if self.method == "GET" and not self.key:
            return "List"
        return {"GET": "Get", "PUT": "Put", "HEAD": "Head", "DELETE": "Delete"}.get(self.method, self.method)


_STATUS = {
    "AccessDenied": "403 Forbidden",
    "NoSuchUpload": "404 Not Found",
    "SlowDown": "503 Slow Down",
    "PreconditionFailed": "412 Precondition Failed",
    "NotImplemented": "501 Not Implemented",
    "ConditionalRequestConflict": "409 Conflict",
    "InvalidAccessKeyId": "403 Forbidden",
}


@dataclass
class S3Server:
    endpoint: str = ""
    rules: list[Rule] = field(default_factory=list)
    seen: list[Request] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # slow to load

        self._app = DomainDispatcherApplication(create_backend_app)
        self._one_at_a_time = RLock()
        self._over = Event()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"].lstrip("/")
        bucket, _, key = path.partition("/")
        headers = {name[5:].lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        request = Request(environ["REQUEST_METHOD"], bucket, key, query, headers)
        self.seen.append(request)
        # Before others are kept waiting: a client may have died in the middle of it.
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        verdict = next((said for rule in list(self.rules) if (said := rule(request))), None)
        if verdict == "silence":
            self._over.wait()
            verdict = "cut before"
        if verdict == "cut before":
            return self._cut(environ, start)
        if verdict == "cut after":
            with self._one_at_a_time:
                list(self._app(environ, lambda *_: None))
            return self._cut(environ, start)
        if verdict is not None:
            return self._refuse(environ, start, verdict)
        with self._one_at_a_time:
            if request.action in ("Complete", "Abort", "ListParts", "UploadPart") and not self._has_upload(request):
                return self._refuse(environ, start, "NoSuchUpload")
            reply = list(self._app(environ, start))
            if request.action == "ListUploads":  # which moto dates 2010, all of them
                now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z".encode()
                reply = [part.replace(b"2010-11-10T20:48:33.000Z", now) for part in reply]
            return reply

    def _has_upload(self, request: Request) -> bool:
        from moto.s3.models import s3_backends

        for account in s3_backends.values():
            for region in account.values():
                if request.bucket in region.buckets:
                    return request.query["uploadId"][0] in region.buckets[request.bucket].multiparts
        return True

    @staticmethod
    def _cut(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with suppress(OSError):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        start("200 OK", [])
        return []

    @staticmethod
    def _refuse(environ: dict[str, Any], start: Callable[..., Any], code: str) -> Iterable[bytes]:
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        start(_STATUS[code], [("Content-Type", "application/xml"), ("Content-Length", str(len(text)))])
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else text]

    @contextmanager
    def ruled(self, rule: Rule) -> Iterator[None]:
        """Let a rule judge every request for the time of the block."""
        self.rules.append(rule)
        try:
            yield
        finally:
            self.rules.remove(rule)
            self._over.set()
            self._over = Event()

    @cached_property
    def client(self) -> Any:
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any) -> None:
            pass

    server = S3Server()
    http = make_server("127.0.0.1", 0, server, threaded=True, request_handler=Quiet)
    server.endpoint = f"http://127.0.0.1:{http.server_port}"
    thread = Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield server
    http.shutdown()
    thread.join()


@dataclass
class Bucket:
    """A bucket of its own for one test."""

    name: str
    server: S3Server

    @property
    def client(self) -> Any:
        return self.server.client

    def keys(self, prefix: str = "") -> list[str]:
        return [o["Key"] for o in self.client.list_objects_v2(Bucket=self.name, Prefix=prefix).get("Contents", ())]

    def read(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=self.name, Key=key)["Body"].read())

    def put(self, key: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=data)

    def open_uploads(self) -> list[str]:
        return [u["Key"] for u in self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", ())]

    def clear(self) -> None:
        for upload in self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", ()):
            self.client.abort_multipart_upload(Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"])
        for key in self.keys():
            self.client.delete_object(Bucket=self.name, Key=key)

    def snapshot(self) -> dict[str, bytes]:
        return {key: self.read(key) for key in self.keys()}


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket, which the usual AWS variables lead to."""
    name = "lake"
    s3_server.client.create_bucket(Bucket=name)
    made = Bucket(name, s3_server)
    made.clear()
    for variable, value in {
        "AWS_ENDPOINT_URL_S3": s3_server.endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "do-not-show-this",
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(variable, value)
    s3_server.seen.clear()
    yield made
    s3_server.rules.clear()
