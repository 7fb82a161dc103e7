/**
 * Headers of server-side encryption: requested by uploads, needed for reading, and shown in
 * responses. https://docs.aws.amazon.com/AmazonS3/latest/userguide/serv-side-encryption.html
 */
import { createHash } from 'node:crypto';
import { S3Error } from '../../../libs/s3-wire/index.ts';
import { settingsOf } from '../../storage/buckets/bucket-settings.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import { CUSTOMER_KEY_BYTES, CustomerKey } from '../../storage/keys/customer-key.ts';
import type { Encryption } from '../../storage/keys/encryption.ts';
import type { Content } from '../../storage/objects/downloads.ts';
import type { PartUploadRow } from '../../storage/uploads/part-uploads.ts';
import type { S3Call } from '../s3-call.ts';

const SSE = 'x-amz-server-side-encryption';
const KEY_ID = `${SSE}-aws-kms-key-id`;
const BUCKET_KEY = `${SSE}-bucket-key-enabled`;
const KMS = 'aws:kms';
const APPLIES_NOT = 'The encryption parameters are not applicable to this object.';

/** The key in the headers of the target, or of the source of a copy. */
type Side = '' | 'copy-source-';

type Headers = Record<string, string>;

function refused(name: string, value: string, message: string): S3Error {
  return new S3Error('InvalidArgument', message, {
    fields: { ArgumentName: name, ArgumentValue: value },
  });
}

function header({ what }: S3Call, name: string): string | undefined {
  const value = what.headers[name];
  return value === undefined ? undefined : String(value);
}

/**
 * undefined: none is sent. Throws S3Error InvalidArgument, InvalidEncryptionAlgorithmError, and
 * InvalidRequest on a connection that others can read.
 */
export function customerKeyOf(call: S3Call, side: Side = ''): CustomerKey | undefined {
  const prefix = `x-amz-${side}server-side-encryption-customer-`;
  const [algorithm, text, md5] = ['algorithm', 'key', 'key-md5'].map((name) => header(call, prefix + name));
  if (algorithm === undefined && text === undefined && md5 === undefined) return undefined;
  const needs = 'Requests specifying Server Side Encryption with Customer provided keys must';
  if (!call.tools.isPrivate()) {
    throw new S3Error('InvalidRequest', `${needs} be made over a secure connection.`);
  }
  if (algorithm === undefined) throw refused(SSE, 'null', `${needs} provide a valid encryption algorithm.`);
  if (algorithm !== 'AES256') {
    throw new S3Error(
      'InvalidEncryptionAlgorithmError',
      'The encryption request you specified is not valid. The valid value is AES256.',
      { fields: { ArgumentName: SSE, ArgumentValue: algorithm } },
    );
  }
  if (text === undefined) throw refused(SSE, 'null', `${needs} provide an appropriate secret key.`);
  if (md5 === undefined) {
    throw refused(SSE, 'null', `${needs} provide the client calculated MD5 of the secret key.`);
  }
  const key = Buffer.from(text, 'base64');
  if (key.length !== CUSTOMER_KEY_BYTES) {
    throw refused(SSE, 'null', 'The secret key was invalid for the specified algorithm.');
  }
  if (createHash('md5').update(key).digest('base64') !== md5) {
    const message = 'The calculated MD5 hash of the key did not match the hash that was provided.';
    throw refused(SSE, 'null', message);
  }
  return new CustomerKey(key);
}

/** The encryption that upload headers request; undefined: the bucket's. Throws S3Error. */
export async function askedEncryption(call: S3Call, bucket: BucketRow): Promise<Encryption | undefined> {
  const key = customerKeyOf(call);
  const algorithm = header(call, SSE);
  const keyId = header(call, KEY_ID);
  if (key !== undefined) {
    if (algorithm === undefined && keyId === undefined) return { kind: 'customer', key };
    const message =
      'Server Side Encryption with Customer provided key is incompatible with the encryption method specified';
    throw refused(SSE, algorithm ?? KMS, message);
  }
  if (algorithm === KMS) return namedEncryption(call, bucket, keyId);
  if (keyId !== undefined) {
    throw refused(KEY_ID, keyId, `${KEY_ID} is only applicable when the encryption method is ${KMS}`);
  }
  if (algorithm === undefined) return undefined;
  if (algorithm === 'AES256') return { kind: 'cloud' };
  throw refused(SSE, algorithm, 'The encryption method specified is not supported');
}

async function namedEncryption(
  { tools: { storage } }: S3Call,
  bucket: BucketRow,
  keyId = settingsOf(bucket).namedKey?.keyId,
): Promise<Encryption> {
  // AWS has a default key for this; here, accounts create every key.
  if (keyId === undefined || keyId === '') {
    throw refused(KEY_ID, '', `${KMS} needs ${KEY_ID}, the name of an encryption key of the account`);
  }
  return { kind: 'named', key: await storage.dataKeys.keyring.find(bucket.account_id, keyId) };
}

/** The response headers that name an encryption. */
export function shownEncryption(call: S3Call, encryption: Encryption): Headers {
  switch (encryption.kind) {
    case 'none':
      return {};
    case 'cloud':
      return { [SSE]: 'AES256' };
    case 'named': {
      const bucketKey = header(call, BUCKET_KEY) === 'true' ? { [BUCKET_KEY]: 'true' } : {};
      return { [SSE]: KMS, [KEY_ID]: encryption.key.keyId, ...bucketKey };
    }
    case 'customer':
      return customerHeaders(call);
  }
}

function customerHeaders(call: S3Call): Headers {
  const name = `${SSE}-customer-`;
  return { [`${name}algorithm`]: 'AES256', [`${name}key-MD5`]: header(call, `${name}key-md5`) ?? '' };
}

/** The encryption of stored bytes, without the client's key. */
export async function storedEncryption(
  { tools: { storage } }: S3Call,
  { row, key }: Content,
): Promise<Encryption> {
  if (key !== undefined) return { kind: 'customer', key };
  return storage.storedEncryption.of(row);
}

/** The headers that name the encryption of an upload in parts; `key`: the client's, if it was sent. */
export async function partEncryption(
  call: S3Call,
  { encryption, named_key, customer }: PartUploadRow,
  key: CustomerKey | undefined,
): Promise<Headers> {
  if (key !== undefined) return shownEncryption(call, { kind: 'customer', key });
  if (customer !== null) return {};
  if (named_key === null) return shownEncryption(call, { kind: encryption === 1 ? 'cloud' : 'none' });
  return shownEncryption(call, {
    kind: 'named',
    key: await call.tools.storage.dataKeys.keyring.byRow(named_key),
  });
}

/**
 * Content that may be read: with the client's key, if it is encrypted with one. Throws S3Error
 * InvalidRequest for a missing, wrong or superfluous key.
 */
export function unlocked(call: S3Call, content: Content, side: Side = ''): Content {
  const key = customerKeyOf(call, side);
  const { customer } = content.row;
  if (customer === null && key === undefined) return content;
  if (customer === null) throw new S3Error('InvalidRequest', APPLIES_NOT);
  if (key === undefined) {
    throw new S3Error(
      'InvalidRequest',
      'The object was stored using a form of Server Side Encryption. The correct parameters must be provided ' +
        'to retrieve the object.',
    );
  }
  // Amazon documents 403 AccessDenied; the common test suites expect 400.
  if (!key.fits(customer)) throw wrongKey();
  return call.tools.storage.downloads.unlock(content, key);
}

/** The customer-provided key for a part of the upload. Throws S3Error InvalidRequest. */
export function partKey(call: S3Call, { customer }: PartUploadRow): CustomerKey | undefined {
  const key = customerKeyOf(call);
  if (customer === null) {
    if (key === undefined) return undefined;
    throw new S3Error('InvalidRequest', 'The upload was not started with a customer-provided key.');
  }
  if (key === undefined) {
    throw new S3Error(
      'InvalidRequest',
      'The multipart upload initiate requested encryption. Subsequent part requests must include the ' +
        'appropriate encryption parameters.',
    );
  }
  if (!key.fits(customer)) throw wrongKey();
  return key;
}

function wrongKey(): S3Error {
  return new S3Error(
    'InvalidRequest',
    'The provided encryption parameters did not match the ones used originally.',
  );
}

/** Throws S3Error InvalidArgument for headers that only uploads have. */
export function assertReadsPlainly(call: S3Call): void {
  for (const name of [SSE, KEY_ID]) {
    const value = header(call, name);
    if (value !== undefined) {
      throw refused(name, value, `${name} header is not supported for this operation.`);
    }
  }
}
