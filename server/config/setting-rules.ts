/** What the text of a setting must be: each gives the rule that it breaks, or undefined. */

export const networks = (value: string) =>
  value === '' || value.split(',').every((entry) => /^[0-9a-fA-F.:]+\/\d{1,3}$/.test(entry))
    ? undefined
    : 'must be networks like 10.0.0.0/8, separated by commas';
export const absolutePath = (value: string) =>
  value === '' || value.startsWith('/') ? undefined : 'must be an absolute path';
/** A wildcard is nothing that a client could connect to. */
export const hostName = (value: string) =>
  /^(?!0\.0\.0\.0$|::$)[0-9A-Za-z.:-]{0,253}$/.test(value)
    ? undefined
    : 'must be a name or address like db.example.com, which clients can connect to';
export const folders = (value: string) =>
  value === '' || value.split(',').every((entry) => entry.startsWith('/'))
    ? undefined
    : 'must be absolute paths, separated by commas';
/** An empty address would mean all addresses, an empty path the working directory: surely a mistake. */
export const notEmpty = (value: string) => (value === '' ? 'must not be empty' : undefined);
export const url = (value: string) =>
  value === '' || /^https?:\/\/[^/]+$/.test(value)
    ? undefined
    : 'must be http(s)://host[:port] without a path';
const isOrigin = (entry: string) => /^https?:/.test(entry) && URL.parse(entry)?.origin === entry;
/** As browsers send them: in lower case, and without the port that the scheme has anyway. */
export const origins = (value: string) =>
  value === '' || value.split(',').every((entry) => entry === '*' || isOrigin(entry))
    ? undefined
    : 'must be origins like https://app.example.com, without a path, separated by commas';
export const pool = (value: string) =>
  /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\/(1[6-9]|2\d|30)$/.test(value)
    ? undefined
    : 'must be an IPv4 network like 127.80.0.0/16, of /16 to /30';
/** Its password is not repeated. */
export const serverUrl = (scheme: RegExp, example: string) => (value: string) => {
  const { protocol = '', hostname, username, searchParams } = URL.parse(value) ?? {};
  const mode = searchParams?.get('sslmode') ?? 'disable';
  const isRight = scheme.test(protocol) && hostname && username && SSL_MODES.includes(mode);
  return value === '' || isRight ? undefined : `must be like ${example}`;
};
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];
export const adminKey = (value: string) =>
  value === '' || /^[\x21-\x7e]{24,512}$/.test(value)
    ? undefined
    : 'must be 24 to 512 visible ASCII characters';
