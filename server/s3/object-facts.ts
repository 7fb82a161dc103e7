/** Operations that describe objects: attributes and tags. */
import { checksumOf, tagText, versionHeader } from './object-headers.ts';
import { findContent } from './object-reading.ts';
import { bucketOf, keyOf, type S3Answer, type S3Call, type S3Operation } from './s3-call.ts';
import { S3Error } from './s3-error.ts';
import { child, children, parseXml, textOf, xmlDocument } from './xml.ts';

const OBJECT = { level: 'object' } as const;
const READ = { ...OBJECT, permission: 'storage:read' } as const;
const WRITE = { ...OBJECT, permission: 'storage:write' } as const;
const TAGS_MAX_BYTES = 64 * 1024;
const PARTS_SHOWN = 1000;

export const FACT_OPERATIONS: readonly S3Operation[] = [
  { ...READ, name: 'GetObjectAttributes', method: 'GET', query: ['attributes'], run: getAttributes },
  { ...READ, name: 'GetObjectTagging', method: 'GET', query: ['tagging'], run: getTagging },
  { ...WRITE, name: 'PutObjectTagging', method: 'PUT', query: ['tagging'], run: putTagging },
  { ...WRITE, name: 'DeleteObjectTagging', method: 'DELETE', query: ['tagging'], run: deleteTagging },
];

async function getAttributes(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const versionId = call.target.query.get('versionId');
  const content = await findContent(call, bucket, { name: keyOf(call), versionId });
  const wanted = String(call.headers['x-amz-object-attributes'] ?? '')
    .split(',')
    .map((name) => name.trim());
  if (wanted[0] === '') throw new S3Error('InvalidArgument', 'The x-amz-object-attributes header is missing');
  const has = (name: string) => wanted.includes(name);
  const checksum = checksumOf(content.row);
  const parts =
    content.row.upload === null
      ? []
      : await call.storage.partUploads.parts(content.row.upload, 0, PARTS_SHOWN);
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
        has('ObjectParts') && parts.length > 0
          ? [
              ['TotalPartsCount', total],
              ['PartNumberMarker', 0],
              ['NextPartNumberMarker', parts.at(-1)?.number],
              ['MaxParts', PARTS_SHOWN],
              ['IsTruncated', total > parts.length],
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

async function getTagging(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const content = await findContent(call, bucket, {
    name: keyOf(call),
    versionId: call.target.query.get('versionId'),
  });
  const tags = content.row.tags === null ? {} : (JSON.parse(content.row.tags) as Record<string, string>);
  const set = Object.entries(tags).map(
    ([Key, Value]) =>
      [
        'Tag',
        [
          ['Key', Key],
          ['Value', Value],
        ],
      ] as const,
  );
  return { headers: versionHeader(bucket, content.row), xml: xmlDocument('Tagging', [['TagSet', set]]) };
}

async function putTagging(call: S3Call): Promise<S3Answer> {
  const root = parseXml(await call.body.whole(TAGS_MAX_BYTES), TAGS_MAX_BYTES);
  const set = child(root, 'TagSet');
  if (root.name !== 'Tagging' || set === undefined) throw new S3Error('MalformedXML');
  const pairs = children(set, 'Tag').map(
    (tag) => [textOf(tag, 'Key') ?? '', textOf(tag, 'Value') ?? ''] as const,
  );
  return setTags(call, tagText(pairs), 200);
}

function deleteTagging(call: S3Call): Promise<S3Answer> {
  return setTags(call, null, 204);
}

async function setTags(call: S3Call, tags: string | null, status: number): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const content = await findContent(call, bucket, {
    name: keyOf(call),
    versionId: call.target.query.get('versionId'),
  });
  await call.storage.objects.setTags(call, content.row, tags);
  return { status, headers: versionHeader(bucket, content.row) };
}
