/** Lifetimes of a new key in seconds, as text; empty: no expiry. */
import { text } from '../../texts/text.ts';

const DAY = 86_400;
export const KEY_TERMS = [
  { value: '', label: text.account.forEver },
  { value: String(30 * DAY), label: text.account.days(30) },
  { value: String(90 * DAY), label: text.account.days(90) },
  { value: String(365 * DAY), label: text.account.days(365) },
];
