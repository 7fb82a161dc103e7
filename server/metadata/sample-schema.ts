/** How a caller asks for readings over time. */
import { type Static, Type } from '../platform/json-schema.ts';

const TIME = 'YYYY-MM-DD HH:MM:SS (UTC) or ISO 8601';

export const MetricsQuery = Type.Object({
  from: Type.Optional(Type.String({ maxLength: 40, description: `${TIME}; default: one hour before to` })),
  to: Type.Optional(Type.String({ maxLength: 40, description: `${TIME}, not included; default: now` })),
  step: Type.Optional(
    Type.Integer({
      minimum: 5,
      maximum: 86_400,
      multipleOf: 5,
      description:
        'Seconds; what is older than an hour is kept in steps of 300. Default: the finest there is',
    }),
  ),
});
export type MetricsQuery = Static<typeof MetricsQuery>;
