/** The texts of spend caps and prices, loaded with the pages that show them. */
import { spend } from './en/spend.ts';

export const spendText = spend;
