/** An error as text: the server's message and its hint. */
import { CloudError } from '../../../../sdk/problem.ts';
import { text } from '../../texts/text.ts';

interface Refusal {
  readonly title: string;
  readonly detail: string;
  readonly requestId: string | undefined;
}

export function refusalOf(error: unknown): Refusal {
  if (!(error instanceof CloudError)) {
    const detail = error instanceof Error ? error.message : String(error);
    return { title: text.shell.pageFailed, detail, requestId: undefined };
  }
  const fields = error.fields.map(({ field, message }) => `${field} ${message}`);
  const detail = [...fields, error.hint].filter((part) => part !== undefined).join('. ');
  return { title: error.message, detail, requestId: error.requestId };
}

/** The part of an error that none of these form fields shows; null: fields show all. */
export function besideFields(error: unknown, fields: ReadonlySet<string>): Refusal | null {
  const refusal = refusalOf(error);
  if (!(error instanceof CloudError) || error.fields.length === 0) return refusal;
  const others = error.fields.filter(({ field }) => !fields.has(memberOf(field)));
  if (others.length === error.fields.length) return refusal;
  if (others.length === 0) return null;
  const [title = '', ...rest] = others.map(({ field, message }) => `${field} ${message}`);
  return { title, detail: rest.join('. '), requestId: refusal.requestId };
}

/** `ports.0` is shown at `ports`. */
const memberOf = (field: string): string => field.split('.', 1)[0] ?? field;

/** The error of one form field, or of an entry of its list, for its `error`. */
export function fieldError(error: unknown, field: string): string | undefined {
  if (!(error instanceof CloudError)) return undefined;
  const wrong = error.fields.filter((one) => memberOf(one.field) === field);
  return wrong.length === 0 ? undefined : [...new Set(wrong.map(({ message }) => message))].join('. ');
}
