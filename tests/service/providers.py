"""A small provider of OpenID Connect, with real keys, and what can be wrong about its tokens."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from functools import cache
from urllib.parse import urlencode

from fastapi import FastAPI, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

CLIENT, SECRET = "cloakgp", "a secret of the client"


@cache
def first_key():
    """Of every provider: to make one takes long."""
    return RSAKey.generate_key(2048, {"kid": "first", "use": "sig"}, private=True)


class Provider:
    """Signs in whoever `subject` says, and does wrong what `wrong` says."""

    def __init__(self):
        self.issuer = ""
        self.subject = "subject-1"
        self.claims = {"groups": ["statisticians"]}
        self.wrong = {}
        self.header = {}
        self.key = first_key()
        self.published = [self.key]
        self.codes = {}
        self.asked = 0
        self.app = self._app()

    def turn_keys(self):
        self.key = ECKey.generate_key("P-256", {"kid": "second", "use": "sig"}, private=True)
        self.published.append(self.key)

    def id_token(self, nonce):
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": nonce,
            **self.claims,
            **self.wrong,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        kind = "ES256" if isinstance(self.key, ECKey) else "RS256"
        header = {"alg": kind, "kid": self.key.kid, **self.header}
        key = OctKey.import_key(SECRET) if header["alg"] == "HS256" else self.key
        return jwt.encode(header, claims, key, algorithms=[header["alg"]])

    def _app(self):
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        def configuration():
            return {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
            }

        @app.get("/keys")
        def keys():
            self.asked += 1
            return {"keys": [key.as_dict(private=False) for key in self.published]}

        @app.get("/authorize")
        def authorize(request: Request):
            given = dict(request.query_params)
            assert given["response_type"] == "code"
            assert given["code_challenge_method"] == "S256"
            assert "openid" in given["scope"].split()
            code = secrets.token_urlsafe(16)
            self.codes[code] = given
            back = {"code": code, "state": given["state"]}
            return RedirectResponse(f"{given['redirect_uri']}?{urlencode(back)}")

        @app.post("/token")
        def token(
            request: Request,
            code: str = Form(),
            code_verifier: str = Form(),
            redirect_uri: str = Form(),
        ):
            begun = self.codes.pop(code, None)
            digest = hashlib.sha256(code_verifier.encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            sent = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            if (
                begun is None
                or begun["code_challenge"] != challenge
                or begun["redirect_uri"] != redirect_uri
                or request.headers.get("authorization") != f"Basic {sent}"
            ):
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            return {
                "access_token": "an access token",
                "token_type": "Bearer",
                "id_token": self.id_token(begun["nonce"]),
            }

        return app
