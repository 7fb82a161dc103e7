/** `$group`, processed document by document. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isDocument } from '../../values/field-paths.ts';
import { textKeyOf } from '../../values/key-order.ts';
import { GATHERERS, type Gatherer, type MakeGatherer } from '../accumulators.ts';
import { collationOf } from '../expression-kinds.ts';
import { evaluate } from '../expressions.ts';
import type { Evaluation } from '../mingo-library.ts';
import { MemoryBudget, weightOf } from '../sorting.ts';

interface Output {
  readonly name: string;
  readonly operator: string;
  readonly argument: unknown;
  /** Collects documents for mingo's accumulator, which needs the whole group. */
  readonly isWhole: boolean;
}

function readOutput([name, value]: [string, unknown]): Output {
  const [[operator = '', argument] = [], ...more] = isDocument(value) ? Object.entries(value) : [];
  if (!operator.startsWith('$'))
    throw new CommandError(40234, `The field '${name}' must be an accumulator object`);
  if (more.length > 0) throw new CommandError(40238, `The field '${name}' must specify one accumulator`);
  const isWhole = !Object.hasOwn(GATHERERS, operator);
  return { name, operator, argument: operator === '$count' ? 1 : argument, isWhole };
}

/** The groups of documents. Throws CommandError when they are too large. */
export function* groupDocuments(
  documents: Iterable<Document>,
  spec: Document,
  options: Evaluation,
): Generator<Document> {
  if (!('_id' in spec)) throw new CommandError(15955, 'a group specification must include an _id');
  const { _id: idOf, ...fields } = spec;
  const outputs = Object.entries(fields).map(readOutput);
  const collation = collationOf(options);
  const budget = new MemoryBudget('$group');
  const groups = new Map<string, { id: unknown; gatherers: Gatherer[] }>();
  for (const document of documents) {
    const id = evaluate(document, idOf, options) ?? null;
    const key = textKeyOf(id, collation);
    let group = groups.get(key);
    if (group === undefined) {
      budget.take(weightOf(id) + key.length + outputs.length * 100);
      const gatherers = outputs.map(({ operator }) =>
        (GATHERERS[operator] ?? documentsOf)(budget, collation),
      );
      group = { id, gatherers };
      groups.set(key, group);
    }
    group.gatherers.forEach((gatherer, i) => {
      const { isWhole, argument } = outputs[i] as Output;
      gatherer.add(isWhole ? document : evaluate(document, argument, options), document);
    });
  }
  for (const { id, gatherers } of groups.values()) {
    const entries = outputs.map(({ name, operator, argument, isWhole }, i) => {
      const result = gatherers[i]?.result();
      return [name, isWhole ? evaluate(result, { [operator]: argument }, options) : result] as const;
    });
    yield { _id: id, ...Object.fromEntries(entries) };
  }
}

const documentsOf = GATHERERS.$push as MakeGatherer;
