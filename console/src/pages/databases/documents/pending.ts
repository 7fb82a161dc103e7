/** Collected changes of documents, before they run. */
import type { DatabaseRowChange } from '../../../../../sdk/index.ts';
import type { Document } from './values.ts';

export interface Edit {
  readonly old: Document;
  /** null: deleted. */
  readonly values: Document | null;
}

export interface Pending {
  /** Keyed by the `_id` as JSON. */
  readonly edits: ReadonlyMap<string, Edit>;
  readonly inserts: readonly Document[];
}

export const NO_CHANGES: Pending = { edits: new Map(), inserts: [] };

export const keyOf = (document: Document) => JSON.stringify(document._id);
export const countOf = ({ edits, inserts }: Pending) => edits.size + inserts.length;

/** An edit without changes is dropped. */
export function withEdit(pending: Pending, edit: Edit): Pending {
  const edits = new Map(pending.edits);
  if (JSON.stringify(edit.values) === JSON.stringify(edit.old)) edits.delete(keyOf(edit.old));
  else edits.set(keyOf(edit.old), edit);
  return { ...pending, edits };
}

/** Deletes run first, so that a new document may reuse the `_id` of a deleted one. */
export function changesOf({ edits, inserts }: Pending): DatabaseRowChange[] {
  const all = [...edits.values()];
  return [
    ...all.filter(({ values }) => values === null).map(({ old }) => ({ action: 'delete' as const, old })),
    ...all.flatMap(({ old, values }) =>
      values === null ? [] : [{ action: 'update' as const, old, values }],
    ),
    ...inserts.map((values) => ({ action: 'insert' as const, values })),
  ];
}
