/** Operations that describe objects: attributes and tags. */

import { S3Error, xmlDocument } from '../../../libs/s3-wire/index.ts';
import { authorizeContent } from '../access/access.ts';
import {
  bucketOf,
  contentOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
  type S3Request,
} from '../s3-call.ts';
import { unlocked } from './encryption-headers.ts';
import { checksumOf, versionHeader } from './object-headers.ts';
import { readTags, TAGS_MAX_BYTES, tagsDocument, tagText } from './tags.ts';

const OBJECT = { level: 'object' } as const;
const READ = { ...OBJECT, permission: 'storage:read' } as const;
const WRITE = { ...OBJECT, permission: 'storage:write' } as const;
const PARTS_SHOWN = 1000;
const ATTRIBUTES = ['ETag', 'Checksum', 'ObjectParts', 'StorageClass', 'ObjectSize'];

const PUT_TAGGING = {
  ...WRITE,
  action: 's3:PutObjectTagging',
  versionAction: 's3:PutObjectVersionTagging',
} as const;

export const FACT_OPERATIONS: readonly S3Operation[] = [
  {
    ...READ,
    name: 'GetObjectAttributes',
    action: 's3:GetObjectAttributes',
    versionAction: 's3:GetObjectVersionAttributes',
    reads: true,
    method: 'GET',
    query: ['attributes'],
    run: getAttributes,
  },
  {
    ...READ,
    name: 'GetObjectTagging',
    action: 's3:GetObjectTagging',
    versionAction: 's3:GetObjectVersionTagging',
    reads: true,
    method: 'GET',
    query: ['tagging'],
    run: getTagging,
  },
  {
    ...PUT_TAGGING,
    decides: true,
    name: 'PutObjectTagging',
    method: 'PUT',
    query: ['tagging'],
    run: putTagging,
  },
  {
    ...WRITE,
    name: 'DeleteObjectTagging',
    action: 's3:DeleteObjectTagging',
    versionAction: 's3:DeleteObjectVersionTagging',
    reads: true,
    method: 'DELETE',
    query: ['tagging'],
    run: deleteTagging,
  },
];

async function getAttributes(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const content = unlocked(call, contentOf(call));
  const wanted = wantedAttributes(call.what);
  const has = (name: string) => wanted.includes(name);
  const checksum = checksumOf(content.row);
  const limit = Math.min(headerNumber(call.what, 'x-amz-max-parts', PARTS_SHOWN), PARTS_SHOWN);
  const marker = headerNumber(call.what, 'x-amz-part-number-marker', 0);
  const found =
    content.row.upload === null || !has('ObjectParts')
      ? []
      : await call.tools.storage.partUploads.parts(content.row.upload, marker, limit + 1);
  const parts = found.slice(0, limit);
  const total = Number(/-(\d+)$/.exec(content.etag)?.[1] ?? 0);
  return {
    headers: {
      'last-modified': new Date(content.createdAt).toUTCString(),
      ...versionHeader(bucket, content.row),
    },
    xml: xmlDocument('GetObjectAttributesResponse', [
      ['ETag', has('ETag') ? content.etag : undefined],
      [
        'Checksum',
        has('Checksum') && checksum
          ? [
              [`Checksum${checksum.algorithm}`, checksum.value.replace(/-\d+$/, '')],
              ['ChecksumType', checksum.type],
            ]
          : undefined,
      ],
      [
        'ObjectParts',
        has('ObjectParts') && content.row.upload !== null
          ? [
              ['PartsCount', total],
              ['PartNumberMarker', marker],
              ['NextPartNumberMarker', parts.at(-1)?.number ?? marker],
              ['MaxParts', limit],
              ['IsTruncated', found.length > limit],
              ...parts.map(
                (part) =>
                  [
                    'Part',
                    [
                      ['PartNumber', part.number],
                      ['Size', part.size_bytes],
                      [`Checksum${checksum?.algorithm}`, part.checksum ?? undefined],
                    ],
                  ] as const,
              ),
            ]
          : undefined,
      ],
      ['StorageClass', has('StorageClass') ? content.row.storage_class : undefined],
      ['ObjectSize', has('ObjectSize') ? content.sizeBytes : undefined],
    ]),
  };
}

/** Throws S3Error InvalidArgument for an unknown attribute, InvalidRequest if none is given. */
function wantedAttributes({ headers }: S3Request): string[] {
  const text = String(headers['x-amz-object-attributes'] ?? '');
  if (text.trim() === '') {
    throw new S3Error(
      'InvalidRequest',
      'The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty',
    );
  }
  const wanted = text.split(',').map((name) => name.trim());
  if (wanted.every((name) => ATTRIBUTES.includes(name))) return wanted;
  throw new S3Error('InvalidArgument', 'Invalid attribute name specified.', {
    fields: { ArgumentName: 'x-amz-object-attributes', ArgumentValue: text },
  });
}

/** Throws S3Error InvalidArgument. */
function headerNumber({ headers }: S3Request, name: string, absent: number): number {
  const text = headers[name];
  if (text === undefined) return absent;
  if (/^\d{1,9}$/.test(String(text))) return Number(text);
  throw new S3Error('InvalidArgument', `${name} must be an integer`, {
    fields: { ArgumentName: name, ArgumentValue: String(text) },
  });
}

async function getTagging(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const content = contentOf(call);
  const tags = content.row.tags === null ? {} : (JSON.parse(content.row.tags) as Record<string, string>);
  return { headers: versionHeader(bucket, content.row), xml: tagsDocument(tags) };
}

async function putTagging(call: S3Call): Promise<S3Answer> {
  const tags = tagText(readTags(await call.what.body.whole(TAGS_MAX_BYTES)));
  // Policies may depend on the new tags.
  await authorizeContent(call, PUT_TAGGING, tags === null ? {} : JSON.parse(tags));
  return setTags(call, tags, 200);
}

function deleteTagging(call: S3Call): Promise<S3Answer> {
  return setTags(call, null, 204);
}

async function setTags(call: S3Call, tags: string | null, status: number): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const content = contentOf(call);
  await call.tools.storage.objects.setFact(call, content.row, { bucket, fact: { tags } });
  return { status, headers: versionHeader(bucket, content.row) };
}
