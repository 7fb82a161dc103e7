/** The child's call `hrana`: `path` after the database, and the body that came. */
import { systemClock } from '../../platform/clock.ts';
import type { Handler } from '../engine-children/child-call.ts';
import { HRANA_LIMITS, HranaSessions } from './hrana-sessions.ts';
import type { TenantDatabase } from './tenant-database.ts';

/** Answers `status` and `contentType` with the body, or with each part of it and with its end. */
export function hranaHandler(database: TenantDatabase): Handler {
  const sessions = new HranaSessions({ database, clock: systemClock, limits: HRANA_LIMITS });
  return async ({ head: { path }, body, signal, part }) => {
    const answer = await sessions.handle({ path: String(path), body, signal });
    const head = { status: answer.status, contentType: answer.contentType };
    if (typeof answer.body === 'string') return { head, body: Buffer.from(answer.body) };
    for await (const piece of answer.body) await part(head, Buffer.from(piece));
    return { head };
  };
}
