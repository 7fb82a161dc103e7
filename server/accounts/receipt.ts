import type { Statement } from '../metadata/metadata.ts';

/** Given what the caller will be answered, the statements that record it: part of the commit it reports. */
export type Receipt = (answer: unknown) => readonly Statement[];

/** For work whose answer nobody will ask for again. */
export const noReceipt: Receipt = () => [];
