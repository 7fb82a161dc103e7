/** What a domain gives to the cloud beside its services. */
import type { Job } from '../platform/jobs.ts';

export interface Part {
  /** Only a server runs them, no operator's command. */
  readonly jobs?: readonly Job[];
  /** Begins what only a server does. */
  readonly start?: () => void;
  /** Begins nothing more: the jobs under way are about to be waited for. */
  readonly stop?: () => void;
  /** Ends what runs. */
  readonly close?: () => Promise<void>;
  /** Writes down what is written now and then, for the last time. */
  readonly flush?: () => Promise<unknown>;
}
