/** How far something is that the host fetches or builds while the cloud already runs. */
import { namedObject, type Static, Type } from './json-schema.ts';

export const Preparing = namedObject('Preparing', {
  percent: Type.Union([Type.Integer({ minimum: 0, maximum: 100 }), Type.Null()], {
    description: 'null: it waits for another part',
  }),
  step: Type.String({ description: 'The present step, for people: `fetching packages`' }),
});
export type Preparing = Static<typeof Preparing>;
