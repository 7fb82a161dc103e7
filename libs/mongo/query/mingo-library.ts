/**
 * mingo, loaded when the first expression needs it: it has hundreds of files, and most databases
 * only find and write documents.
 */
import { createRequire } from 'node:module';
import type { Document } from 'bson';
import type { Options } from 'mingo/types';

/** Options that mingo passes along during evaluation. */
export type Evaluation = Options;
export type Expression = (document: unknown, argument: unknown, options: Evaluation) => unknown;
export type Accumulator = (documents: unknown[], argument: unknown, options: Evaluation) => unknown;
export type MingoStage = (documents: unknown, argument: unknown, options: Evaluation) => Iterable<Document>;

export interface Mingo {
  readonly evaluate: Expression;
  readonly context: (operators: object) => NonNullable<Options['context']>;
  readonly lazy: (documents: Iterable<Document>) => unknown;
  readonly expressions: Readonly<Record<string, Expression>>;
  readonly accumulators: Readonly<Record<string, Accumulator>>;
  readonly stages: Readonly<Record<string, MingoStage>>;
}

const require = createRequire(import.meta.url);
let library: Mingo | null = null;

export function mingo(): Mingo {
  if (library !== null) return library;
  const { Context, evalExpr } = require('mingo/core');
  library = {
    evaluate: evalExpr,
    context: (operators) => Context.init(operators),
    lazy: require('mingo/lazy').Lazy,
    expressions: require('mingo/operators/expression'),
    accumulators: require('mingo/operators/accumulator'),
    stages: require('mingo/operators/pipeline'),
  };
  return library;
}
