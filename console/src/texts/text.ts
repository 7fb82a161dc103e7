/** The texts of the console in the selected language. */
import { en } from './en/en.ts';

/** The type of a language: add another one as an object of this type, and a choice below. */
export type Texts = typeof en;

export const text: Texts = en;
