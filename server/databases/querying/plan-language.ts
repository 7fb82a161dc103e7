/**
 * The query plans of engines in one common shape. Each engine has its own in its
 * folder (`plans` of its description).
 */
import type { Query } from '../engine.ts';

export interface PlanStep {
  /** 0: the outermost step. The steps that supply its rows follow, one level deeper. */
  readonly depth: number;
  /** Name of the step in the engine: `Hash Join`. */
  readonly operation: string;
  /** The table, index or collection; null: none. */
  readonly on: string | null;
  /** null if the engine does not report it, here and below. */
  readonly estimatedRows: number | null;
  readonly cost: number | null;
  /** Measured, of all loops. */
  readonly actualRows: number | null;
  readonly timeMs: number | null;
  readonly details: readonly { readonly name: string; readonly value: string }[];
}

export interface PlanAnswer {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

export interface PlanLanguage {
  /** Whether a plan can have measured figures, for which the statement runs. */
  readonly canMeasure: boolean;
  /** The statement that asks for the plan of this one. */
  explain(statement: Query['statement'], measure: boolean): Query['statement'];
  /** The plan in its answer, each step before those beneath it. */
  read(answer: PlanAnswer): readonly PlanStep[];
}

type Members = Readonly<Record<string, unknown>>;

/** The members of the value if it is an object; else empty. */
export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

export function numberOrNull(value: unknown): number | null {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : null;
}

/** Members that are shown as text; an empty one or an object is not. */
export function detailsOf(members: Members, without: ReadonlySet<string>): PlanStep['details'] {
  return Object.entries(members).flatMap(([name, value]) => {
    const list = Array.isArray(value) ? value : [value];
    const isShown = list.length > 0 && list.every((one) => one !== null && typeof one !== 'object');
    return isShown && !without.has(name) ? [{ name, value: list.join(', ') }] : [];
  });
}
