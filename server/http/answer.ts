/** What the edge sends, in one piece. */

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';
