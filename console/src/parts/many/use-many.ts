/** One action for many resources, with the outcome of each: a refusal does not stop the others. */
import { type Key, useRef, useState } from 'react';
import { refusalOf } from '../forms/refusal.ts';

/** Calls at a time: the cloud has other callers, too. */
const AT_ONCE = 4;

/** `done`, or the error; missing: no result yet. */
export type Outcomes = ReadonlyMap<Key, 'done' | { readonly refusal: string }>;

interface Many<Item, Values> {
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => Key;
  readonly send: (item: Item, values: Values) => Promise<unknown>;
  /** Reads the changed resources again. */
  readonly onEnd: () => Promise<unknown>;
}

/** `start` sends the remaining calls, a few at a time; `stop` lets the running ones end. */
export function useMany<Item, Values>({ items, keyOf, send, onEnd }: Many<Item, Values>) {
  const [outcomes, setOutcomes] = useState<Outcomes>(new Map());
  const [isBusy, setBusy] = useState(false);
  const isOver = useRef(false);
  const one = async (item: Item, values: Values) => {
    const outcome = await send(item, values).then(
      () => 'done' as const,
      (error: unknown) => {
        const { title, detail } = refusalOf(error);
        return { refusal: detail === '' ? title : detail };
      },
    );
    setOutcomes((all) => new Map(all).set(keyOf(item), outcome));
  };
  const start = async (values: Values) => {
    setBusy(true);
    const left = items.filter((item) => outcomes.get(keyOf(item)) !== 'done').values();
    const worker = async () => {
      for (const item of left) {
        if (isOver.current) return;
        await one(item, values);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    setBusy(false);
    await onEnd();
  };
  const stop = () => {
    isOver.current = true;
  };
  const done = items.filter((item) => outcomes.get(keyOf(item)) === 'done').length;
  return { outcomes, isBusy, done, failed: outcomes.size - done, start, stop };
}
