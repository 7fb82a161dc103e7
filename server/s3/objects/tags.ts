/** Tags of objects and buckets, in XML and in rows; object-headers.ts parses the header. */
import {
  child,
  parseXml,
  S3Error,
  textOf,
  type XmlElement,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';

export type Tags = Readonly<Record<string, string>>;
type Pair = readonly [name: string, value: string];

export const TAGS_MAX_BYTES = 64 * 1024;
const MAX_OBJECT_TAGS = 10;
export const MAX_BUCKET_TAGS = 50;
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html */
const ALLOWED = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;
const RESERVED = /^aws:/i;

/** At most ten tags with different names, as JSON; null: none. Throws S3Error InvalidTag. */
export function tagText(pairs: readonly Pair[]): string | null {
  const tags = tagsFrom(pairs, MAX_OBJECT_TAGS);
  return pairs.length === 0 ? null : JSON.stringify(tags);
}

/** Throws S3Error InvalidTag for more than `max` tags, and for invalid or duplicate ones. */
export function tagsFrom(pairs: readonly Pair[], max: number): Tags {
  if (pairs.length > max) throw new S3Error('InvalidTag', `There can be at most ${max} tags`);
  const names = new Set(pairs.map(([name]) => name));
  if (names.size !== pairs.length) throw new S3Error('InvalidTag', 'There are tags with the same key');
  for (const [name, value] of pairs) assertTag(name, value);
  return Object.fromEntries(pairs);
}

function assertTag(name: string, value: string): void {
  if (name === '' || name.length > 128 || value.length > 256) throw new S3Error('InvalidTag');
  if (RESERVED.test(name)) throw new S3Error('InvalidTag', 'Keys of tags cannot begin with aws:');
  if (ALLOWED.test(name) && ALLOWED.test(value)) return;
  throw new S3Error('InvalidTag', 'Tags have letters, numbers, spaces and + - = . _ : / @ only');
}

/** The pairs of a `Tagging` document. Throws S3Error MalformedXML. */
export function readTags(body: Buffer): Pair[] {
  const root = parseXml(body, TAGS_MAX_BYTES);
  const set = child(root, 'TagSet');
  if (root.name !== 'Tagging' || set === undefined) throw new S3Error('MalformedXML');
  return tagPairs(set);
}

/** Key and value of each `Tag` in an element that contains nothing else. Throws S3Error MalformedXML. */
export function tagPairs(set: XmlElement): Pair[] {
  return set.children.map((tag) => {
    const [name, value] = [textOf(tag, 'Key'), textOf(tag, 'Value')];
    if (tag.name !== 'Tag' || name === undefined || value === undefined) throw new S3Error('MalformedXML');
    return [name, value];
  });
}

export function tagsDocument(tags: Tags): string {
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
  return xmlDocument('Tagging', [['TagSet', set]]);
}
