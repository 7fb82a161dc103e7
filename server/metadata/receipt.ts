import type { Statement } from './metadata.ts';

/**
 * Given what the caller will be answered, the statements that record it. A domain appends them to the
 * commit that has the effect, so that an idempotent retry finds both or neither.
 */
export type Receipt = (answer: unknown) => readonly Statement[];

/** For work whose answer nobody will ask for again. */
export const noReceipt: Receipt = () => [];
