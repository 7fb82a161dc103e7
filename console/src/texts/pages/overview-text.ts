/** The texts of the overview, loaded with it. */
import { overview } from '../en/pages/overview.ts';

export const overviewText = overview;
