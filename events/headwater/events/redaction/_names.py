"""The names that secrets have: of options, and of what stands in texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headwater.events.redaction._folding import any_of, fold, lazy, word_set

STRONG: Final = word_set("""
    assword pa_ss_word passwd p4ss pa55 passwort passw pasword p@ssw pa$$w pass_phrase
    pass_code pass_key pass_number pswd pwd key_pass store_pass passord kenn_wort kennziffer zugangscode losungswort
    kodeord contrasena clave_es mot_de_passe senha haslo wachtwoord losenord adgangskode salasana jelszo
    salaisuus titkos parola parool heslo sifre lozinka geslo zaporka geheim schlussel sleutel jeton segret segred
    chiave_privata chave_de_acesso llave_privada hemlig hemmelig tajn klucz klic anahtar kata_sandi rahasia
    mat_khau ma_bi_mat cle_d'api парол секрет ключ токен гасло κωδικ κλειδ συνθημ 密码 密碼 口令 密钥 密鑰 令牌 私钥
    秘密 合言葉 パスワード 暗証番号 トークン 비밀 비번 암호 토큰 รหัสผ่าน كلمة_المرور كلمة_السر رمز_المرور
    رمز_عبور گذرواژه סיסמ पासवर्ड கடவுச்சொல்
    secret token credential jaas jwt bearer authorization oauth oauth_token cookie webhook connection_string conn_str
    shared_access user_info identified_by master_auth login_module csrf xsrf mnemonic nickserv secure_string unseal
    docker_config recovery_code recovery_phrase seed_phrase seed_words key_phrase code_word safe_word backup_code
    security_code security_answer verification_code authentication_string snmp azure_sas
    access_key account_key activation_key admin_key aes_key api_key app_key auth_key cipher_key client_key
    crypto_key decryption_key deploy_key encryption_key fernet_key footer_key genie_key hmac_key integration_key
    instrumentation_key isakmp_key kms_key license_key machine_key master_key pairing_key priv_key private_key
    product_key props_key pvt_key routing_key rsa_key sas_key serial_key server_key service_key session_key
    shared_key signing_key sse_key ssh_key storage_key subscription_key symmetric_key tls_key validation_key
    key_string
""")
"""Whatever holds one of these, with separators or without, is a secret's name. `_`: the words also stand apart."""
WEAK: Final = word_set("""
    pass pw pin psk otp mfa 2fa puk mdp kode clave sandi sifra sas sig sid salt seed auth cred creds cvv cvv2 cvc hmac
    nonce pepper assertion license
""")
"""These are a secret's name where they are a word of an option's name, and in a text where a value follows."""
_WEAK_IN_OPTIONS: Final = WEAK | word_set("key keys pem totp hotp signature jwt")

_LONGEST: Final = 256
"""Only the end of a longer name is looked at: no option is called so."""
_SEPARATORS: Final = frozenset("-_.")
_DROPPED: Final = str.maketrans("", "", "-_.")
_WORD: Final = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_secret(name: str) -> bool:
    """Whether the value of an option of this name is a secret."""
    folded = fold(name[-_LONGEST:])
    if folded is None or _STRONG.search(folded.text.lower().translate(_DROPPED)):
        return True
    words = map(str.lower, _WORD.findall(folded.text))
    return any(word in _WEAK_IN_OPTIONS or word.endswith(("pass", "pw", "auth")) for word in words)


def squash(name: str) -> str:
    """The name as it is compared with others: folded and without separators."""
    folded = fold(name[-_LONGEST:])
    return name if folded is None else folded.text.lower().translate(_DROPPED).replace(" ", "")


def strong_names(seen: str) -> Iterator[tuple[int, int]]:
    """Where surely secrets' names stand in a folded text in lower case."""
    names = list(_STRONG.finditer(seen.translate(_DROPPED)))
    places = [at for at, char in enumerate(seen) if char not in _SEPARATORS] if names else []
    return ((places[found.start()], places[found.end() - 1] + 1) for found in names)


def _strong_names() -> str:
    names = (folded.text for name in sorted(STRONG, key=len, reverse=True) if (folded := fold(name)))
    apart = (re.escape(name).replace("_", r"\s{0,12}") for name in names)
    return rf"(?:{any_of(_LETTERS, *apart)})(?:s\b)?"


_LETTERS: Final = r"p\sa\ss\ss\sw\so\sr\sd"
_STRONG: Final = lazy(_strong_names)
