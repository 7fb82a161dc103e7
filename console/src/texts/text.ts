/** The texts of the console in the language that is shown. */
import { en } from './en/en.ts';

/** The type of a language: another one is an object of this type, and a choice below. */
export type Texts = typeof en;

export const text: Texts = en;
