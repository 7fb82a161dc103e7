/** Every change of the schema, in order. Append only: a migration that was released is never edited. */
import { initial } from './0001-initial.ts';
import { machines } from './0002-machines.ts';
import { images } from './0003-images.ts';
import { billing } from './0004-billing.ts';
import { webhooks } from './0005-webhooks.ts';
import { sealedFingerprints } from './0006-sealed-fingerprints.ts';
import { operations } from './0007-operations.ts';
import { versionAccess } from './0008-version-access.ts';
import { keptAnswers } from './0009-kept-answers.ts';
import { freePlan } from './0010-free-plan.ts';
import { databases } from './0011-databases.ts';
import { freePlanDatabases } from './0012-free-plan-databases.ts';
import { recovery } from './0013-recovery.ts';
import { databaseSamples } from './0014-database-samples.ts';
import { pointDamage } from './0015-point-damage.ts';
import { sessionNames } from './0016-session-names.ts';
import { objectOrder } from './0017-object-order.ts';
import { identity } from './0018-identity.ts';
import { keptTime } from './0019-kept-time.ts';
import { plansFollowHost } from './0020-plans-follow-host.ts';

export interface Migration {
  /** 1, 2, 3, … without gaps. */
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

export const migrations: readonly Migration[] = [
  { number: 1, name: 'initial', sql: initial },
  { number: 2, name: 'machines', sql: machines },
  { number: 3, name: 'images', sql: images },
  { number: 4, name: 'billing', sql: billing },
  { number: 5, name: 'webhooks', sql: webhooks },
  { number: 6, name: 'sealed fingerprints', sql: sealedFingerprints },
  { number: 7, name: 'operations', sql: operations },
  { number: 8, name: 'version access', sql: versionAccess },
  { number: 9, name: 'kept answers', sql: keptAnswers },
  { number: 10, name: 'free plan', sql: freePlan },
  { number: 11, name: 'databases', sql: databases },
  { number: 12, name: 'free plan databases', sql: freePlanDatabases },
  { number: 13, name: 'recovery', sql: recovery },
  { number: 14, name: 'database samples', sql: databaseSamples },
  { number: 15, name: 'point damage', sql: pointDamage },
  { number: 16, name: 'session names', sql: sessionNames },
  { number: 17, name: 'object order', sql: objectOrder },
  { number: 18, name: 'identity', sql: identity },
  { number: 19, name: 'kept time', sql: keptTime },
  { number: 20, name: 'plans follow host', sql: plansFollowHost },
];
