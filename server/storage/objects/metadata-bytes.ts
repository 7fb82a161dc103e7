/**
 * Bytes of an object's name and metadata: rows without contents fill a disk too, so they count as stored, in
 * quotas and in charges. Migration 38 has the same sum in SQL.
 */
import type { VersionRow } from './object-rows.ts';

/** The texts that users give with an object. A delete marker has only the name. */
type Texts = { readonly name: string } & Pick<
  VersionRow,
  'mime_type' | 'metadata' | 'headers' | 'tags' | 'acl'
>;

/** Bytes of UTF-8. */
export const sizeOfText = (text: string | null) => (text === null ? 0 : Buffer.byteLength(text));

export function metadataBytesOf({ name, mime_type, metadata, headers, tags, acl }: Texts): number {
  const texts = [name, mime_type, metadata, headers, tags, acl];
  return texts.reduce((sum, text) => sum + sizeOfText(text), 0);
}
