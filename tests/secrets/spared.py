# ruff: noqa: E501, ISC004, Q003 - data, as it stands in the wild
"""Texts that look like credentials and are none: of code, builds and documents."""

from __future__ import annotations

SPARED = (
    # Paths, hashes and identifiers
    "src/agent_journal/engines/sqlite_vectors.py:271",
    "/home/me/.cache/uv/archive-v0/3Jx8hN2kLmP0qRsT/lib/python3.11/site-packages",
    "C:\\Users\\jane\\AppData\\Local\\Temp\\npm_config_cache\\_npx\\9f86d081884c7d65",
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "md5 d41d8cd98f00b204e9800998ecf8427e, as of an empty file",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "task 123e4567-e89b-12d3-a456-426614174000 failed",
    "session ses_7f3aB2cD9eF1gH4iJ6kL8mN0 ended",
    "msg_01XFDUDYJgAACzvnptvVoYEL is a message's id, not a key",
    "ULID 01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "image ghcr.io/acme/shop@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "disk-9f86d081884c7d659a2feaa0c55ad015 is mounted",
    "cache-key-5d41402abc4b2a76b9719d911017c592",
    "the public key is ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE",
    "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kdhrvhsfqtlc3h0",
    "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw4E5SY8",
    # Lock files
    '"integrity": "sha512-oT4DoWMXxxqWKGm7JDdHb7cUDSCCpSxTzpMhBvAYOTPbSk4mlGHRwqjNpdbHF3tCbfu1Lpw3p9l'
    'wIKiPRXVbHg==",',
    "--hash=sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 \\",
    "golang.org/x/text v0.14.0 h1:ScX5w1eTa3QqT8oi6+ziP7dTV1S2+ALU0bI+0zXKWiQ=",
    "checksum = \"8f3b1c2d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9\"",
    "yarn: 10c0/3b4c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c",
    # Documentation's examples
    "AKIAIOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "export GITHUB_TOKEN=ghp_" + "x" * 36,
    "ghp_1234567890abcdefghijklmnopqrstuvwxyz",
    "set it to sk-ant-api03-your-key-here-your-key-here-your-key-here",
    "glpat-XXXXXXXXXXXXXXXXXXXX",
    "xoxb-your-bot-token-goes-in-here",
    "sk_live_" + "0123456789" * 3,
    "AIzaSy" + "." * 33,
    "hf_" + "a" * 34,
    "npm_abababababababababababababababababab",
    "glpat-authentication-settings-page",
    "Authorization: Bearer <token>",
    "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    "Basic authentication is off",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 is a header by itself",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0Ijox"
    "NTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    "a token looks like eyJhbGciOi... and has three parts",
    "it begins with -----BEGIN RSA PRIVATE KEY----- and ends with -----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBkTCB+wIJAKHHCgVZU6bDMA0GCSqGSIb3DQEBCwUAMA0xCzAJBgNVBAYTAlVT\n"
    "-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9\n"
    "-----END PUBLIC KEY-----",
    'grep -rn "BEGIN PRIVATE KEY" src/agent_journal/secrets/finding/of/blocks/in/text',
    "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "client-certificate-data: LS0tLS1CRUdJTi" + "BDRVJUSUZJQ0FURS0tLS0tCk1JSUN4akNDQWE2Z0F3SUJBZ0lCQVRBTk"
    "Jna3Foa2lHOXcwQkFRc0ZBREFWTVJNd0VRWURWUVFERXdwdGFXNXA=",
    "npm_" + "a1B2c3D4e5" * 3 + "a1B2c3",
    "My-Namespace_For_Things1.Handle.of-the-2nd-Kind_of-Things-in-v3",
    "MyNamespaceForAllThings2024.Handle.of-the-2nd-Kind_of-Things-in-v3",
    # Marks of keys, and no key between
    'if not t.startswith("-----BEGIN PRIVATE KEY-----"):\n    raise ValueError("no key")\n'
    + "A key is read once, and what it says is kept by nobody.\n" * 60
    + "ends with -----END PRIVATE KEY-----",
    "PEM wraps what it holds between -----BEGIN EC PRIVATE KEY-----, lines of at most 64 characters"
    " in base64, and -----END EC PRIVATE KEY----- at last.",
    'def is_pem(text: str) -> bool:\n    begin = "-----BEGIN PRIVATE KEY-----"\n'
    '    return text.startswith(begin) and text.rstrip().endswith("-----END PRIVATE KEY-----")\n',
    'const BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----",\n      MIDDLE = /^[A-Za-z0-9+/=\\s]+$/,\n'
    '      END = "-----END OPENSSH PRIVATE KEY-----";',
    "-----BEGIN RSA PRIVATE KEY-----\n<base64 of the key that openssl has made, in lines of 64>\n"
    "-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B...\n-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n[the contents of your key go in here, as they are]\n"
    "-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nsrc/components/navigation/DropdownMenu2/index9/v10/Component\n"
    "-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nTHEKEYSTANDSHEREINBASE64ANDINLINES0FSIXTYFOURCHARACTERSEACH\n"
    "-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n" + "0123456789abcdef" * 8 + "\n-----END PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: the key was taken away, ask"
    " Jane\n\n-----END PGP PRIVATE KEY BLOCK-----",
    "starts with -----BEGIN PRIVATE KEY-----\n" + "\u9375\u306f\u3053\u3053\u306b\u306f\u306a\u3044\n" * 30
    + "ends with -----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nwas the first line of what was thrown away yesterday, said Jane",
    # URLs
    "https://github.com/acme/shop.git",
    "git@github.com:acme/shop.git",
    "ssh://git@git.acme.test:2222/acme/shop.git",
    "https://jane@dev.azure.com/acme/shop/_git/shop",
    "http://localhost:8080/users/@jane",
    "http://localhost:4096/session?directory=/src/shop&email=jane@acme.test",
    "postgres://user:password@localhost:5432/db",
    "postgres://postgres:postgres@localhost:5432/postgres",
    "https://$USER:$TOKEN@github.com/acme/shop",
    "f\"https://{user}:{password}@{host}/\"",
    "https://<user>:<password>@host",
    "mysql://root:${MYSQL_ROOT_PASSWORD}@db/shop",
    "redis://:****@cache:6379",
    "https://registry.npmjs.test:4873/@acme/shop",
    "see http://localhost:8080),jane@acme.test",
    "docker://alpine:3.19@sha256:c5b1261d6d3e43071626931fc004f70149baeba2c8ec672bd4f27761f8e1ad6b",
    "mvn://org.acme:shop@1.2.3",
    "new URL('https://abc:xyz@acme.test')",
    "https://jane:s3cr3t-w0rd@example.com/, ftp://a:hunter22@www.example.org:21",
    "https://acme.test/reset?password=<new>",
    "git://[path-to-repo[:]][ref@]path/to/file",
    "[fe80::1]:8080, http://[::1]:8080/@a",
    # What stands for a password
    "postgres://svc:${PASSWORD}@db.prod:5432/x",
    "postgres://svc:${DB_PASSWORD:-none}@db.prod:5432/x",
    "postgres://svc:$PASSWORD@db.prod:5432/x",
    "postgres://svc:$DB_PASSWORD2@db.prod:5432/x",
    "postgres://svc:$password@db.prod:5432/x",
    "postgres://svc:$dbPassword@db.prod:5432/x",
    "postgres://svc:$1@db.prod:5432/x",
    "postgres://svc:%PASSWORD%@db.prod:5432/x",
    "postgres://svc:%s@db.prod:5432/x",
    "postgres://svc:%(password)s@db.prod:5432/x",
    "postgres://svc:{password}@db.prod:5432/x",
    "postgres://svc:{self.password}@db.prod:5432/x",
    "postgres://svc:{{password}}@db.prod:5432/x",
    "postgres://svc:$(get-it)@db.prod:5432/x",
    "postgres://svc:[password]@db.prod:5432/x",
    "postgres://svc:***@db.prod:5432/x",
    "postgres://svc:%2A%2A%2A%2A@db.prod:5432/x",
    "postgres://svc:%3Ctoken%3E@db.prod:5432/x",
    "postgres://svc:%24%7BPASSWORD%7D@db.prod:5432/x",
    "postgres://svc:%7Bpassword%7D@db.prod:5432/x",
    "postgres://svc:your-password@db.prod:5432/x",
    "postgres://svc:changeme@db.prod:5432/x",
    "postgres://svc:change_this@db.prod:5432/x",
    "postgres://svc:insert-password-here@db.prod:5432/x",
    "postgres://svc:yourStrong(!)Password@db.prod:5432/x",
    "postgres://svc:mysecretpassword@db.prod:5432/x",
    "postgres://svc:MyPassword123@db.prod:5432/x",
    "postgres://svc:REPLACE_WITH_YOUR_TOKEN@db.prod:5432/x",
    "postgres://svc:****1234@db.prod:5432/x",
    "postgres://svc:xxxxxxxx@db.prod:5432/x",
    "https://shop.test/in?pwd=/home/me",
    "https://shop.test/in?passwd=/etc/passwd&a=1",
    "https://shop.test/in?password=required",
    "https://shop.test/in?pwd=%2Fhome%2Fme%2Fsrc",
    "https://shop.test/in?password=reset",
    # Code
    "the component is src/components/navigation/DropdownMenu2/index9/v10/Component",
    "getUserProfileSettingsFromDatabaseOrCacheByIdentifier",
    "see https://acme.test/#SectionOnHowToDeployTheThing2026ToTheStagingClusterNo15",
    "password: string",
    "const { password, token } = await prompt({ type: 'password' })",
    "password = os.environ['DB_PASSWORD']",
    "api_key=settings.api_key, max_tokens=4096",
    "token: Token = next(tokens)",
    'throw new Error("secret is missing")',
    "def test_tokens_are_counted_per_entry_in_v2() -> None: ...",
    "!function(e,t){\"object\"==typeof exports?module.exports=t():e.App=t()}(this,function(){var e={},t=0;"
    "return function(n){return e[n]||(e[n]=n.toString(36)+t++)}})",
    "AbstractSingletonProxyFactoryBeanConfigurationTest2IntegrationSpec",
    'const ID = "glyphicons_pat_v1_regular_sk_icons"',
    "skeleton-loader sk-circle-fade-dot sk-folding-cube-wrapper-animation-delay",
    "rk_live_view and sk_test_helper are functions",
    "re_compile_pattern_and_search_in_the_text_of_a_line",
    "{\"kid\":\"key-1\",\"alg\":\"RS256\",\"n\":\"0vx7agoebGcQSuuPiLJXZptN9nnd\"}",
    # Images
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAA"
    "BJRU5ErkJggg==",
    "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
    # Prose of secrets
    "The password was wrong; the token had expired. Rotate the API key.",
    "Kept in 1Password under shop/prod, item db.",
    "das Passwort: siehe Tresor; le mot de passe : dans le coffre",
    "[masked:github-token] stood here",
    "https://jane:[masked:url-password]@git.shop.test/",
)  # fmt: skip
"""Each stays as it is, and none is even suspected."""
