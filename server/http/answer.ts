/** What the edge sends, in one piece. */

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The body as it is sent: JSON ends with a line end, so that a terminal's prompt does not stick to it. */
export function lineOf({ contentType, body }: Answer): string {
  return /^application\/(?:problem\+)?json\b/.test(contentType) ? `${body}\n` : body;
}
