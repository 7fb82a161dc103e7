/** The signer of a form, whose policy is signed with version 4 or 2. */
import { createHmac } from 'node:crypto';
import { type Claim, deriveKey, isSameText, readFormScope, S3Error } from '../../../libs/s3-wire/index.ts';

type Fields = ReadonlyMap<string, string>;

/**
 * null: it is not signed. `verify` throws S3Error SignatureDoesNotMatch. Throws S3Error
 * InvalidArgument for an incomplete signature, NotImplemented for asymmetric ones.
 */
export function formClaim(fields: Fields): Claim | null {
  if (fields.has('x-amz-security-token')) throw new S3Error('InvalidToken');
  const isNew = ['x-amz-algorithm', 'x-amz-credential', 'x-amz-signature'].some((name) => fields.has(name));
  if (isNew) return newClaim(fields);
  const isOld = ['awsaccesskeyid', 'signature', 'policy'].some((name) => fields.has(name));
  return isOld ? oldClaim(fields) : null;
}

function newClaim(fields: Fields): Claim {
  const policy = needed(fields, 'policy');
  const signature = needed(fields, 'x-amz-signature');
  const algorithm = needed(fields, 'x-amz-algorithm');
  const credential = needed(fields, 'x-amz-credential');
  const { accessKeyId, date, region } = readFormScope(
    { algorithm, credential, dateTime: needed(fields, 'x-amz-date') },
    (why) => new S3Error('InvalidArgument', why),
  );
  return claimOf(accessKeyId, { policy, signature }, (secret) =>
    createHmac('sha256', deriveKey(secret, date, region))
      .update(policy)
      .digest('hex'),
  );
}

function oldClaim(fields: Fields): Claim {
  const policy = needed(fields, 'policy');
  const signature = needed(fields, 'signature');
  const accessKeyId = needed(fields, 'awsaccesskeyid', 'AWSAccessKeyId');
  return claimOf(accessKeyId, { policy, signature }, (secret) =>
    createHmac('sha1', secret).update(policy).digest('base64'),
  );
}

function claimOf(
  accessKeyId: string,
  { policy, signature }: { policy: string; signature: string },
  sign: (secret: string) => string,
): Claim {
  const verify = (secret: string) => {
    if (isSameText(sign(secret), signature.trim())) return null;
    throw new S3Error('SignatureDoesNotMatch', undefined, {
      fields: { AWSAccessKeyId: accessKeyId, StringToSign: policy, SignatureProvided: signature },
    });
  };
  return { accessKeyId, payload: { kind: 'unsigned' }, verify };
}

function needed(fields: Fields, name: string, shown = name): string {
  const value = fields.get(name);
  if (value !== undefined && value !== '') return value;
  throw missingField(shown);
}

export function missingField(name: string): S3Error {
  return new S3Error(
    'InvalidArgument',
    `Bucket POST must contain a field named '${name}'. If it is specified, please check the order of the fields.`,
    { fields: { ArgumentName: name, ArgumentValue: '' } },
  );
}
