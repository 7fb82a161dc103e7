/** Statements of a dump, in pieces of any size. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SqlStatements } from './sql-statements.ts';

interface Seen {
  readonly text: string;
  readonly line: number;
}

/** The statements passed to the filter, and the resulting text, with all that have GRANT or `\c` replaced. */
function read(text: string, pieceBytes: number): { readonly seen: Seen[]; readonly out: string } {
  const seen: Seen[] = [];
  const ask = (whole: string, line: number) => {
    seen.push({ text: whole, line });
    return /^(?:GRANT|\\c)/.test(whole) ? 'X;' : null;
  };
  const statements = new SqlStatements({ asksAbout: () => true, statement: ask, command: ask });
  const all = Buffer.from(text);
  const out: Buffer[] = [];
  for (let at = 0; at < all.length; at += pieceBytes)
    out.push(...statements.take(all.subarray(at, at + pieceBytes)));
  out.push(...statements.end());
  return { seen, out: Buffer.concat(out).toString() };
}

const TEXT = String.raw`-- GRANT a TO b; it's a comment
/* GRANT /* nested; */ c; */
SELECT 'GRANT d; it''s
text', E'\';GRANT e;', "GRANT;f", $$GRANT g;$$, $a$ $b$; $a$;
COPY public.t (a, "b;") FROM stdin;
GRANT h;	'\\N
\.x
\.
GRANT i
  TO j;
\connect k
CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; GRANT; END;
CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);
SELECT a$b$c;
SELECT $1; SELECT 'ü'
`;

describe('statements for psql', () => {
  test('are found whatever the pieces are, and lines stay where they are', () => {
    const whole = read(TEXT, TEXT.length * 2);
    assert.deepEqual(
      whole.seen.map(({ text, line }) => [line, text.split(/[\s(]/, 2).join(' ')]),
      [
        [3, "SELECT 'GRANT"],
        [5, 'COPY public.t'],
        [9, 'GRANT i'],
        [11, '\\connect k'],
        [12, 'CREATE FUNCTION'],
        [13, 'CREATE RULE'],
        [14, 'SELECT a$b$c;'],
        [15, 'SELECT $1;'],
        [15, "SELECT 'ü'"],
      ],
    );
    assert.equal(whole.out, TEXT.replace('GRANT i\n  TO j;', 'X;\n').replace('\\connect k', 'X;'));
    for (const bytes of [1, 2, 3, 7, 64]) assert.deepEqual(read(TEXT, bytes), whole, `${bytes}`);
  });

  test('with CRLF, and with old strings, are the same', () => {
    const text =
      "SET standard_conforming_strings = off;\r\nSELECT '\\';GRANT a;';\r\nGRANT b;\r\nCOPY t FROM stdin;\r\n";
    const { seen, out } = read(`${text}GRANT c;\r\n\\.\r\nGRANT d;\r\n`, 5);
    assert.deepEqual(
      seen.map(({ line }) => line),
      [1, 2, 3, 4, 7],
    );
    assert.match(out, /X;\r\nCOPY t FROM stdin;\r\nGRANT c;\r\n\\\.\r\nX;\r\n$/);
  });

  test('of any length pass without being held', () => {
    const statements = new SqlStatements({
      asksAbout: () => true,
      statement: () => assert.fail('it was held'),
      command: () => null,
    });
    const piece = Buffer.from("('GRANT;', 1), ".repeat(4000));
    let held = statements.take(Buffer.from('INSERT INTO t VALUES ')).length;
    let [given, taken] = [0, 0];
    for (let round = 0; round < 50; round++) {
      given += piece.length;
      for (const { length } of statements.take(piece)) taken += length;
      held = Math.max(held, given - taken);
    }
    assert.ok(held < 200_000, `${held}`);
    statements.end();
  });
});
