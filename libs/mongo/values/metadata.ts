/** Values about a document besides its fields, for `$meta`: how it was found. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';

export interface Metadata {
  readonly textScore?: number;
  readonly geoNearDistance?: number;
}

const known = new WeakMap<Document, Metadata>();

export function setMetadata(document: Document, metadata: Metadata): void {
  known.set(document, metadata);
}

export function metadataOf(document: unknown): Metadata | undefined {
  return typeof document === 'object' && document !== null ? known.get(document) : undefined;
}

/** Reads a value of `$meta`; undefined: the document was not found in that way. Throws CommandError. */
export function metaValue(document: unknown, name: unknown): number | undefined {
  if (name === 'textScore' || name === 'geoNearDistance') return metadataOf(document)?.[name];
  throw new CommandError(17308, `Unsupported argument to $meta: ${String(name)}`);
}
