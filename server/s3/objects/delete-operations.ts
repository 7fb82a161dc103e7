/** Operations that delete objects. */

import { child, children, parseXml, S3Error, textOf, xmlDocument } from '../../../libs/s3-wire/index.ts';
import type { Asked } from '../access/access.ts';
import { toS3Error } from '../domain-errors.ts';
import {
  accessOf,
  assertVersionId,
  bucketOf,
  keyOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
  type S3Request,
  type S3Tools,
} from '../s3-call.ts';
import { assertKey } from '../target.ts';
import { bypassesGovernance } from './lock-operations.ts';
import { deleteCondition } from './object-headers.ts';

const DELETE_MAX_BYTES = 2 * 2 ** 20;
const MAX_DELETES = 1000;
/** Objects of one request deleted concurrently. */
const DELETES_AT_ONCE = 16;

const PERMISSION = 'storage:append';

export const DELETE_OPERATIONS: readonly S3Operation[] = [
  {
    name: 'DeleteObject',
    action: 's3:DeleteObject',
    versionAction: 's3:DeleteObjectVersion',
    method: 'DELETE',
    level: 'object',
    permission: PERMISSION,
    run: deleteObject,
  },
  {
    name: 'DeleteObjects',
    action: 's3:DeleteObject',
    decides: true,
    method: 'POST',
    level: 'bucket',
    query: ['delete'],
    permission: PERMISSION,
    run: deleteObjects,
  },
];

async function deleteObject(call: S3Call): Promise<S3Answer> {
  const { headers, target } = call.what;
  const size = headers['x-amz-if-match-size'];
  const at = headers['x-amz-if-match-last-modified-time'];
  const condition = deleteCondition({
    etag: headers['if-match'],
    size: size === undefined ? undefined : read(Number, 'x-amz-if-match-size', String(size)),
    modifiedAt:
      at === undefined ? undefined : read(Date.parse, 'x-amz-if-match-last-modified-time', String(at)),
  });
  const versionId = target.query.get('versionId');
  if (versionId !== undefined) assertVersionId(versionId);
  const { name: bucketName } = await bucketOf(call);
  const { answer } = await removeOne(call, bucketName, {
    name: keyOf(call.what),
    versionId,
    condition,
    bypass: bypassesGovernance(call, keyOf(call.what)),
  });
  return { status: 204, headers: answer };
}

/** Throws S3Error InvalidArgument if the value is invalid. */
function read(parse: (text: string) => number, name: string, text: string): number {
  const value = text.trim() === '' ? Number.NaN : parse(text);
  if (value >= 0) return value;
  throw new S3Error('InvalidArgument', `Invalid value for ${name}`, {
    fields: { ArgumentName: name, ArgumentValue: text },
  });
}

type Removal = Parameters<S3Tools['storage']['removals']['removeNamed']>[2];

/** The headers of a delete: the created marker, or the removed version. */
async function removeOne(call: S3Call, bucketName: string, removal: Removal) {
  const bucket = await bucketOf(call);
  const { versionId } = removal;
  const removed = await call.tools.storage.removals.removeNamed(call, bucketName, removal).catch((error) => {
    // A missing version is no error, unless the request expects one.
    if (toS3Error(error).code !== 'NoSuchVersion') throw error;
    removal.condition?.(undefined);
    return null;
  });
  const answer: Record<string, string> = {};
  if (versionId !== undefined) {
    answer['x-amz-version-id'] = versionId;
    if (removed?.wasMarker === true) answer['x-amz-delete-marker'] = 'true';
  } else if (removed?.answer.is_delete_marker === true) {
    answer['x-amz-delete-marker'] = 'true';
    answer['x-amz-version-id'] = bucket.versioning === 1 ? (removed.answer.version_id ?? '') : 'null';
  }
  return { answer };
}

async function deleteObjects(call: S3Call): Promise<S3Answer> {
  const body = await call.what.body.whole(DELETE_MAX_BYTES);
  if (call.what.headers['content-md5'] === undefined && !hasChecksum(call.what))
    throw new S3Error('InvalidRequest', 'Missing required header for this request: Content-MD5');
  // Keys may contain any character, and clients such as boto3 send it unescaped.
  const root = parseXml(body, DELETE_MAX_BYTES, true);
  const named = children(root, 'Object');
  if (root.name !== 'Delete' || named.length === 0 || named.length > MAX_DELETES)
    throw new S3Error('MalformedXML');
  const { name: bucketName } = await bucketOf(call);
  const isQuiet = textOf(root, 'Quiet') === 'true';
  const wanted = named.map((each) => ({
    key: textOf(each, 'Key') ?? '',
    versionId: textOf(each, 'VersionId') || undefined,
    condition: deleteCondition({
      etag: textOf(each, 'ETag'),
      size: child(each, 'Size') === undefined ? undefined : Number(textOf(each, 'Size')),
      modifiedAt:
        child(each, 'LastModifiedTime') === undefined
          ? undefined
          : Date.parse(textOf(each, 'LastModifiedTime') ?? ''),
    }),
  }));
  if (wanted.some(({ key }) => key === '')) throw new S3Error('MalformedXML');
  const access = accessOf(call);
  const mayAny = access.isOwner || wanted.some((each) => access.allows(deletionOf(each)));
  if (!mayAny) throw new S3Error('AccessDenied');
  const results: (
    | readonly [string, readonly (readonly [string, string | boolean | undefined])[]]
    | undefined
  )[] = [];
  for (let from = 0; from < wanted.length; from += DELETES_AT_ONCE) {
    const lot = wanted.slice(from, from + DELETES_AT_ONCE);
    results.push(
      ...(await Promise.all(lot.map((each) => deleteOne(call, bucketName, { ...each, isQuiet })))),
    );
  }
  return { xml: xmlDocument('DeleteResult', results) };
}

function deletionOf({ key, versionId }: Pick<Wanted, 'key' | 'versionId'>): Asked {
  const action = versionId === undefined ? 's3:DeleteObject' : 's3:DeleteObjectVersion';
  return { action, permission: PERMISSION, key };
}

function hasChecksum({ headers }: S3Request): boolean {
  return (
    Object.keys(headers).some((name) => name.startsWith('x-amz-checksum-') || name === 'x-amz-trailer') ||
    headers['x-amz-content-sha256'] !== 'UNSIGNED-PAYLOAD'
  );
}

interface Wanted {
  readonly key: string;
  readonly versionId: string | undefined;
  readonly condition: Removal['condition'];
  readonly isQuiet: boolean;
}

async function deleteOne(call: S3Call, bucketName: string, { key, versionId, condition, isQuiet }: Wanted) {
  try {
    assertKey(key);
    accessOf(call).assert(deletionOf({ key, versionId }));
    // Each is a separate change.
    const own = { ...call, record: () => [] };
    const bypass = bypassesGovernance(call, key);
    const { answer } = await removeOne(own, bucketName, { name: key, versionId, condition, bypass });
    const isMarker = answer['x-amz-delete-marker'] === 'true';
    const shown = answer['x-amz-version-id'];
    return isQuiet
      ? undefined
      : ([
          'Deleted',
          [
            ['Key', key],
            ['VersionId', versionId],
            ['DeleteMarker', isMarker ? true : undefined],
            ['DeleteMarkerVersionId', isMarker ? shown : undefined],
          ],
        ] as const);
  } catch (error) {
    const { code, message } = toS3Error(error);
    if (code === 'InternalError') throw error;
    return [
      'Error',
      [
        ['Key', key],
        ['VersionId', versionId],
        ['Code', code],
        ['Message', message],
      ],
    ] as const;
  }
}
