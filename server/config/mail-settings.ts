/** The settings of mail: the server, and the sender. */
import { ConfigError, text } from './setting-kinds.ts';

/** Address of the server. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the start (smtps), after STARTTLS (smtp), or none. */
  readonly tls: 'smtps' | 'starttls' | 'off';
  readonly user: string;
  readonly password: string;
}

export interface MailAddress {
  /** Empty: none. */
  readonly name: string;
  readonly address: string;
}

const EXAMPLE = 'smtps://user:password@mail.example.org';
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/;

/** Throws ConfigError, which does not repeat the password. */
export function parseSmtpUrl(value: string): SmtpServer {
  const url = URL.parse(value);
  const isSecure = url?.protocol === 'smtps:';
  if (url === null || (!isSecure && url.protocol !== 'smtp:') || url.hostname === '')
    throw new ConfigError(`must be like ${EXAMPLE}`);
  if (!['', '/'].includes(url.pathname) || url.hash !== '') throw new ConfigError(`must be like ${EXAMPLE}`);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const wanted = url.searchParams.get('tls');
  if (wanted !== null && (!['off', 'starttls'].includes(wanted) || isSecure))
    throw new ConfigError('may have ?tls=off or ?tls=starttls, of smtp:// only');
  const isPlain = wanted === 'off' || (wanted === null && LOOPBACK.test(host));
  const [user, password] = [decoded(url.username), decoded(url.password)];
  if (user !== '' && isPlain && !isSecure && !LOOPBACK.test(host))
    throw new ConfigError('must not send a password without TLS: leave ?tls=off out');
  return {
    host,
    port: url.port === '' ? (isSecure ? 465 : 587) : Number(url.port),
    tls: isSecure ? 'smtps' : isPlain ? 'off' : 'starttls',
    user,
    password,
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ConfigError('has a % that is not followed by two hexadecimal digits: write it as %25');
  }
}

const ADDRESS = /^[^\s@<>,;:"\\]+@[^\s@<>,;:"\\]+$/u;

/** `cloud@example.org` or `A cloud <cloud@example.org>`. Throws ConfigError. */
export function parseMailFrom(value: string): MailAddress {
  const [, name = '', inside] = /^([^<>"\r\n]*)<([^<>]*)>$/u.exec(value) ?? [];
  const address = inside ?? value;
  if (!ADDRESS.test(address) || /\p{Cc}/u.test(value))
    throw new ConfigError('must be like cloud@example.org or A cloud <cloud@example.org>');
  return { name: name.trim(), address };
}

/** A check for text(): the problem, or undefined. */
const checked = (parse: (value: string) => unknown) => (value: string) => {
  try {
    if (value !== '') parse(value);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

export const MAIL_SETTINGS = {
  smtpUrl: text(
    'CLOUDLET_SMTP_URL',
    '',
    `SMTP server for the mail of this cloud: \`${EXAMPLE}\` (TLS, port 465) or \`smtp://…\` (STARTTLS, port 587; without TLS on loopback, unless with \`?tls=starttls\`, or with \`?tls=off\`); needs CLOUDLET_MAIL_FROM; empty: no mail is sent`,
    checked(parseSmtpUrl),
  ),
  mailFrom: text(
    'CLOUDLET_MAIL_FROM',
    '',
    'Sender of the mail, `cloud@example.org` or `A cloud <cloud@example.org>`',
    checked(parseMailFrom),
  ),
} as const;
