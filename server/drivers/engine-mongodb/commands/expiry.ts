/** Removes the documents whose time is over, as indexes with `expireAfterSeconds` ask for. */
import { plainNumber } from '../values/numbers.ts';
import { type CommandScope, find } from './command-scope.ts';

/** At one time, so that no command waits long for it. */
const MAX_REMOVED = 10_000;

export function removeExpired(scope: CommandScope): void {
  const { store, writing, clock } = scope;
  const expiring = store
    .collections()
    .flatMap((collection) =>
      collection.indexes
        .filter(({ spec }) => spec.expireAfterSeconds !== undefined)
        .map((index) => ({ collection, index })),
    );
  if (expiring.length === 0) return;
  store.transaction(() => {
    for (const { collection, index } of expiring) {
      const before = new Date(clock.now() - plainNumber(index.spec.expireAfterSeconds) * 1000);
      const path = index.fields[0]?.path.join('.') ?? '';
      const filter = { ...index.spec.partialFilterExpression, [path]: { $lte: before } };
      for (const found of find(collection.name, scope, { filter, limit: MAX_REMOVED }))
        writing.remove(collection, found);
    }
  });
}
