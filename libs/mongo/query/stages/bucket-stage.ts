/** `$bucket`: converted to a `$group` by boundaries, as on a server. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isDocument } from '../../values/field-paths.ts';
import { compareValues, tagOf } from '../../values/key-order.ts';

const OPTIONS = new Set(['groupBy', 'boundaries', 'default', 'output']);

/** The specification of the `$group`. Throws CommandError. */
export function groupOfBuckets(spec: unknown): Document {
  if (!isDocument(spec)) throw new CommandError(40201, 'Argument to $bucket stage must be an object');
  const unknown = Object.keys(spec).find((name) => !OPTIONS.has(name));
  if (unknown !== undefined) throw new CommandError(40197, `Unrecognized option to $bucket: ${unknown}.`);
  const { groupBy, boundaries, output = { count: { $sum: 1 } } } = spec;
  if (groupBy === undefined || boundaries === undefined)
    throw new CommandError(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
  if (!Array.isArray(boundaries))
    throw new CommandError(40200, "The $bucket 'boundaries' field must be an array");
  if (boundaries.length < 2)
    throw new CommandError(40192, "The $bucket 'boundaries' field must have at least 2 values");
  if (!isDocument(output)) throw new CommandError(40196, "The $bucket 'output' field must be an object");
  const pairs = boundaries.slice(1).map((high: unknown, i) => [boundaries[i] as unknown, high] as const);
  for (const [low, high] of pairs) {
    if (tagOf(low) !== tagOf(high))
      throw new CommandError(
        40193,
        "All values in the 'boundaries' option to $bucket must have the same type.",
      );
    if (compareValues(low, high) >= 0)
      throw new CommandError(40194, "The 'boundaries' option to $bucket must be sorted in ascending order");
  }
  const [least, most] = [boundaries[0], boundaries.at(-1)];
  if ('default' in spec && compareValues(spec.default, least) >= 0 && compareValues(spec.default, most) < 0)
    throw new CommandError(
      40199,
      "The $bucket 'default' field must be less than the lowest boundary or not below the highest",
    );
  const branches = pairs.map(([low, high]) => {
    const holds = { $and: [{ $gte: [groupBy, { $literal: low }] }, { $lt: [groupBy, { $literal: high }] }] };
    return Object.fromEntries([
      ['case', holds],
      ['then', { $literal: low }],
    ]);
  });
  const otherwise = 'default' in spec ? { default: { $literal: spec.default } } : {};
  return { _id: { $switch: { branches, ...otherwise } }, ...output };
}
