/** Addresses of S3 buckets: `s3://KEY:SECRET@HOST[:PORT]/BUCKET[/PREFIX]?region=…&tls=off&style=host`. */

export interface S3Address {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** Whether the bucket is the first part of the path, or of the host name. */
  readonly style: 'path' | 'host';
  readonly region: string;
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** `s3://host:port/bucket/prefix`: for people, without the secret. */
  readonly label: string;
}

const S3_EXAMPLE = 's3://KEY:SECRET@s3.example.com/bucket/prefix?region=us-east-1';
const PARAMETERS: Readonly<Record<string, RegExp>> = {
  region: /^[a-z0-9-]{1,40}$/,
  tls: /^(?:on|off)$/,
  style: /^(?:path|host)$/,
};
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX = /^(?:[A-Za-z0-9_.-]+\/)*$/;

/**
 * Throws an Error that names the broken rule and never the secret. `credentials`, `KEY:SECRET`, replace those
 * of the URL, which may then have none. `file`: the setting that names a file with them.
 */
export function parseS3Url(
  value: string,
  credentials = '',
  file = 'CLOUDLET_BLOBS_CREDENTIALS_FILE',
): S3Address {
  const url = URL.parse(value.replace(/^s3:/, 'https:'));
  if (url === null || !value.startsWith('s3://')) throw new Error(`must be like ${S3_EXAMPLE}`);
  for (const [name, given] of url.searchParams) {
    const rule = PARAMETERS[name];
    if (rule === undefined)
      throw new Error(`has the unknown parameter ${name}; it may have region, tls and style`);
    if (!rule.test(given)) throw new Error(`has a ${name} that does not match ${rule.source}`);
  }
  const [bucket = '', ...folders] = url.pathname.slice(1).split('/');
  if (!BUCKET.test(bucket)) throw new Error(`must name a bucket: ${S3_EXAMPLE}`);
  const prefix = folders.filter((part) => part !== '').join('/');
  if (!PREFIX.test(prefix === '' ? '' : `${prefix}/`) || /(?:^|\/)\.\.?(?:\/|$)/.test(prefix)) {
    throw new Error('has a prefix with characters other than letters, digits, `_`, `.`, `-` and `/`');
  }
  const keys = credentials === '' ? keysOf(url, file) : splitKeys(credentials.trim());
  const tls = url.searchParams.get('tls') !== 'off';
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (value.includes(`${url.hostname}:443`) || tls ? 443 : 80)),
    tls,
    style: url.searchParams.get('style') === 'host' ? 'host' : 'path',
    region: url.searchParams.get('region') ?? 'us-east-1',
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    ...keys,
    label: `s3://${url.host}/${bucket}${prefix && '/'}${prefix}`,
  };
}

type Keys = Pick<S3Address, 'accessKeyId' | 'secretAccessKey'>;

function keysOf({ username, password }: URL, file: string): Keys {
  if (username === '' || password === '') {
    throw new Error(`must have KEY:SECRET before the host, or ${file} must be set`);
  }
  // Secrets have slashes and plus signs, which a URL has to encode.
  return { accessKeyId: decodeURIComponent(username), secretAccessKey: decodeURIComponent(password) };
}

function splitKeys(text: string): Keys {
  const [, accessKeyId, secretAccessKey] = /^([^\s:]+):(\S+)$/.exec(text) ?? [];
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new Error('needs credentials of the form KEY:SECRET on one line');
  }
  return { accessKeyId, secretAccessKey };
}
