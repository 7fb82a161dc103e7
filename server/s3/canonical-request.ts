/**
 * The parts of a request in the form in which AWS Signature Version 4 covers them, from the bytes that came
 * over the wire (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html). Strings hold
 * a character per byte, as Node gives header values and request targets.
 */

/** Lower-case names, each with its values in the order in which they came. */
export type RawHeaders = ReadonlyMap<string, readonly string[]>;

/** From Node's `rawHeaders`: `headers` drops some that come twice, and joins others with a space. */
export function readHeaders(rawHeaders: readonly string[]): RawHeaders {
  const headers = new Map<string, string[]>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? '';
    const value = rawHeaders[at + 1] ?? '';
    const values = headers.get(name);
    if (values === undefined) headers.set(name, [value]);
    else values.push(value);
  }
  return headers;
}

function hex(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Decodes and encodes again as RFC 3986 does: upper-case digits, and nothing encoded that need not be. */
function recoded(raw: string): string {
  return raw.replace(/%([0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~]/g, (found, digits: string | undefined) => {
    const byte = digits === undefined ? found.charCodeAt(0) : Number.parseInt(digits, 16);
    const character = String.fromCharCode(byte);
    return /[A-Za-z0-9\-._~]/.test(character) ? character : hex(byte);
  });
}

/**
 * How the client may have written the path when it signed: as it was sent, which is S3's own rule, or
 * encoded, if it sent characters plainly that it encoded for signing; some then write `/` for `%2F`. All name
 * one key.
 */
export function* canonicalPaths(rawPath: string): Generator<string> {
  // Most requests are over with the first.
  yield rawPath;
  const encoded = rawPath.split('/').map(recoded).join('/');
  if (encoded !== rawPath) yield encoded;
  const plain = encoded.replaceAll('%2F', '/');
  if (plain !== encoded && plain !== rawPath) yield plain;
}

/** Name and value of each parameter, recoded. `+` is a space, as target.ts reads it: never a signed `%2B`. */
export function queryPairs(rawQuery: string): [name: string, value: string][] {
  const pairs = rawQuery.split('&').filter((pair) => pair !== '');
  return pairs.map((pair) => {
    const spaced = pair.replaceAll('+', '%20');
    const equals = spaced.indexOf('=');
    if (equals < 0) return [recoded(spaced), ''];
    return [recoded(spaced.slice(0, equals)), recoded(spaced.slice(equals + 1))];
  });
}

const order = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

/** Sorted by name, then by value. */
export function canonicalQuery(pairs: readonly (readonly [name: string, value: string])[]): string {
  const sorted = pairs.toSorted(([a, x], [b, y]) => order(a, b) || order(x, y));
  return sorted.map(([name, value]) => `${name}=${value}`).join('&');
}

function collapsed(value: string): string {
  return value.trim().replace(/\s+/g, ' ');
}

function collapsedOutsideQuotes(value: string): string {
  return value.trim().replace(/"[^"]*"|\s+/g, (found) => (found.startsWith('"') ? found : ' '));
}

/**
 * The lines of the signed headers, `name:value\n`, in the order in which the client names them. Clients
 * collapse spaces everywhere; by Amazon's older text, those within quotes stay: both are possible. A header
 * that is signed and missing counts as empty.
 */
export function* canonicalHeaders(headers: RawHeaders, names: readonly string[]): Generator<string> {
  const lines = (tidy: (value: string) => string) =>
    names.map((name) => `${name}:${(headers.get(name) ?? []).map(tidy).join(',')}\n`).join('');
  const usual = lines(collapsed);
  yield usual;
  const other = lines(collapsedOutsideQuotes);
  if (other !== usual) yield other;
}
