/** Why something is in its state. */
import { namedObject, Type } from '../platform/json-schema.ts';

export const Reason = namedObject('Reason', {
  code: Type.String({ description: 'Stable name' }),
  message: Type.String(),
});
