/** Locations: `s3://BUCKET/NAME`, or a local path; and name patterns. */
import { UsageError } from '../failures.ts';

export interface RemoteLocation {
  readonly bucket: string;
  /** A name, or the beginning of several. */
  readonly key: string;
}

const SCHEME = 's3://';
const BUCKET = /^[a-z0-9][a-z0-9.-]*$/;

/** A remote location, or undefined for a local path. Throws UsageError for a malformed one. */
export function remoteLocation(text: string): RemoteLocation | undefined {
  return text.startsWith(SCHEME) ? bucketAndKey(text, text.slice(SCHEME.length)) : undefined;
}

/** The error for two local paths where one must be in the cloud. */
export function neitherRemote(words: readonly string[], form: string): UsageError {
  const rule = `the source or the target must be ${form}`;
  for (const word of words) {
    const location = likelyLocation(word);
    if (location !== undefined)
      return new UsageError(`${rule}; did you mean ${location} instead of ${word}?`);
  }
  if (words.some((word) => /^https?:/.test(word)))
    return new UsageError(rule, 'URLs are for curl and browsers; cloudlet presign creates one');
  return new UsageError(rule, 'To see your buckets: cloudlet ls');
}

/** The location that was probably meant, after a typo in the scheme or the syntax of scp; undefined: none. */
function likelyLocation(text: string): string | undefined {
  const slip = afterSlip(text);
  if (slip !== undefined) return slip;
  const [, bucket, key = ''] = /^([a-z0-9][a-z0-9.-]{2,62}):(?!\/\/)\/?(.*)$/s.exec(text) ?? [];
  return bucket === undefined ? undefined : `${SCHEME}${bucket}/${key}`;
}

/** The location after a mistyped scheme; no bucket has the name `s3`, which is too short. */
function afterSlip(text: string): string | undefined {
  const [, rest] = /^s3(?:[:;][/\\]*|[/\\]+)([^/\\].*)$/is.exec(text) ?? [];
  return rest === undefined ? undefined : `${SCHEME}${rest}`;
}

/** A remote location; `s3://` may be omitted since no local path is possible here. */
export function remoteOnly(text: string): RemoteLocation {
  return remoteLocation(text) ?? bucketAndKey(text, text);
}

/** A remote location with an object name. Throws UsageError for a bucket. */
export function remoteObject(text: string): RemoteLocation {
  const location = remoteOnly(text);
  if (location.key === '') throw new UsageError(`${text} names no object; expected s3://BUCKET/NAME`);
  return location;
}

/** A bucket alone. Throws UsageError for a name in it: the command would affect more than intended. */
export function remoteBucket(text: string): string {
  const { bucket, key } = remoteOnly(text);
  if (key !== '') throw new UsageError(`${text} names an object; expected a bucket: s3://${bucket}`);
  return bucket;
}

function bucketAndKey(text: string, path: string): RemoteLocation {
  const meant = path === text ? likelyLocation(text) : afterSlip(path);
  if (meant !== undefined) throw new UsageError(`${text} is not a location; did you mean ${meant}?`);
  const [bucket = ''] = path.split('/', 1);
  if (bucket !== '' && !BUCKET.test(bucket)) {
    const rule = 'A bucket has 3 to 63 lower-case letters, digits, dots and hyphens';
    throw new UsageError(`"${bucket}" cannot be the name of a bucket`, rule);
  }
  if (bucket === '') {
    const likely = likelyLocation(text);
    const guess = likely === undefined || likely === text ? '' : `; did you mean ${likely}?`;
    throw new UsageError(`${text} does not have the form s3://BUCKET/NAME${guess}`);
  }
  return { bucket, key: path.slice(bucket.length + 1) };
}

export function shown({ bucket, key }: RemoteLocation): string {
  return `${SCHEME}${bucket}/${key}`;
}

/** Whether the text has wildcards. */
export function isPattern(text: string): boolean {
  return /[*?]/.test(text);
}

/** `*` and `?` match within a folder, `**` across folders. */
export function matcher(pattern: string): (name: string) => boolean {
  const expression = pattern.replace(/\*\*\/?|[*?]|[.+^${}()|[\]\\]/g, (found) => {
    if (found === '**/') return '(?:.*/)?';
    if (found === '**') return '.*';
    if (found === '*') return '[^/]*';
    return found === '?' ? '[^/]' : `\\${found}`;
  });
  const whole = new RegExp(`^${expression}$`, 's');
  return (name) => whole.test(name);
}

/**
 * Selects names. A pattern without `/` applies to the last part of a name, or to a folder anywhere.
 * With an include pattern, everything else is excluded.
 */
export function selection(
  included: readonly string[],
  excluded: readonly string[],
): (name: string) => boolean {
  const testsOf = (patterns: readonly string[]) =>
    patterns.map((pattern) => {
      const test = matcher(pattern.replace(/\/$/, '/**'));
      if (pattern.replace(/\/$/, '').includes('/')) return test;
      const part = matcher(pattern.replace(/\/$/, ''));
      return (name: string) => test(name) || name.split('/').some(part);
    });
  const [ins, outs] = [testsOf(included), testsOf(excluded)];
  return (name) => (ins.length === 0 || ins.some((test) => test(name))) && !outs.some((test) => test(name));
}

/** Device names of Windows. */
const DEVICES = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * Why a name cannot be a file below a folder here, or undefined. Whoever can write to a bucket
 * chooses names, but must not choose where files on this computer are written.
 */
export function unsafeName(name: string, platform: string = process.platform): string | undefined {
  if (name.includes('\0')) return 'contains a NUL character';
  if (name.startsWith('/')) return 'is absolute';
  const parts = name.split('/');
  if (parts.some((part) => part === '..')) return 'leaves the folder';
  if (parts.some((part) => part === '.' || part === '')) return 'has an empty path segment';
  if (platform !== 'win32') return undefined;
  if (/[\\:*?"<>|]/.test(name)) return 'has a character that Windows does not allow';
  return parts.some((part) => DEVICES.test(part) || /[. ]$/.test(part))
    ? 'is a reserved name on Windows'
    : undefined;
}

/** Order of names in a bucket: by UTF-8 bytes, unlike JavaScript strings. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ASCII characters
  if (/^[\x00-\x7f]*$/.test(a) && /^[\x00-\x7f]*$/.test(b)) return a < b ? -1 : 1;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
