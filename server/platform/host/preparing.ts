/** Progress of components that the host installs while the cloud is running already. */
import { namedObject, type Static, Type } from '../json/json-schema.ts';

export const Preparing = namedObject('Preparing', {
  percent: Type.Union([Type.Integer({ minimum: 0, maximum: 100 }), Type.Null()], {
    description: 'Progress in percent; null: waiting for another part',
  }),
  step: Type.String({ description: 'Current step, such as `fetching packages`' }),
});
export type Preparing = Static<typeof Preparing>;
