/** The texts of an import, loaded with its window. */
import { imports } from './en/databases/imports.ts';

export const importsText = imports;
