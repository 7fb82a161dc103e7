/** The collections of a file and their indexes. */
import type { DatabaseSync } from 'node:sqlite';
import { UUID } from 'bson';
import { decodeDocument } from '../values/bson-documents.ts';
import type { Collection } from './documents-store.ts';
import { idIndex, indexOf } from './index-keys.ts';

export function readCatalog(database: DatabaseSync): Map<string, Collection> {
  const all = (sql: string) => database.prepare(sql).all();
  const specs = Map.groupBy(all('SELECT * FROM indexes ORDER BY id'), ({ collection }) => collection);
  const collections = all('SELECT * FROM collections ORDER BY id').map((row): Collection => {
    const options = decodeDocument(row.options as Uint8Array);
    const indexes = (specs.get(row.id as number) ?? []).map(({ id, spec, multikey }) =>
      indexOf(decodeDocument(spec as Uint8Array), { id: Number(id), isMultikey: multikey === 1 }),
    );
    return {
      id: Number(row.id),
      name: String(row.name),
      uuid: new UUID(row.uuid as Uint8Array),
      options,
      indexes: [idIndex(options), ...indexes],
      documents: Number(row.documents),
      bytes: Number(row.bytes),
    };
  });
  return new Map(collections.map((each) => [each.name, each]));
}
