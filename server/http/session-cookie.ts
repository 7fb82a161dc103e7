/**
 * The console's session cookie (RFC 6265). Behind https it has the `__Host-` prefix, with which browsers
 * refuse a cookie that another host or an unencrypted page tries to plant.
 */
const NAME = 'cloudlet_session';
const SECURE_NAME = `__Host-${NAME}`;
/** base64url of 32 bytes. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export interface SessionCookie {
  readonly token: string;
  /** Users reach us by https. */
  readonly secure: boolean;
  readonly maxAgeSeconds: number;
}

/** The value of Set-Cookie that begins a session. */
export function renderSessionCookie({ token, secure, maxAgeSeconds }: SessionCookie): string {
  const name = secure ? SECURE_NAME : NAME;
  const flags = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  return `${name}=${token}; ${flags}${secure ? '; Secure' : ''}`;
}

/** The value of Set-Cookie that makes the browser forget it. */
export function renderEndedSessionCookie(secure: boolean): string {
  return renderSessionCookie({ token: '', secure, maxAgeSeconds: 0 });
}

/** The token in a Cookie header; undefined when there is none of the right form. The prefixed name wins. */
export function readSessionCookie(header: string | undefined): string | undefined {
  if (header === undefined || !header.includes(NAME)) return undefined;
  let plain: string | undefined;
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    const name = pair.slice(0, equals).trim();
    if (equals < 0 || (name !== NAME && name !== SECURE_NAME)) continue;
    const token = pair.slice(equals + 1).trim();
    if (!TOKEN.test(token)) continue;
    if (name === SECURE_NAME) return token;
    plain ??= token;
  }
  return plain;
}
