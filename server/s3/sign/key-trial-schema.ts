/** The response to the test of an access key. */
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';

export const KeyTrialStep = namedObject('AccessKeyTestStep', {
  step: Type.Enum(['endpoint', 'signature', 'list_buckets', 'read', 'write'] as const, {
    description: 'Step of the test; steps after the first failure are omitted',
  }),
  ok: Type.Boolean(),
  code: textOrNull(
    'Error code of S3 or of the connection, such as `SignatureDoesNotMatch` or `ECONNREFUSED`',
  ),
  message: Type.String({ description: 'Result of the step' }),
});
export type KeyTrialStep = Static<typeof KeyTrialStep>;

export const KeyTrialBody = namedObject('AccessKeyTest', {
  bucket: Type.Optional(
    Type.String({ maxLength: 63, description: 'Default: the first bucket that the key is limited to' }),
  ),
});
export type KeyTrialBody = Static<typeof KeyTrialBody>;

export const KeyTrialResult = namedObject('AccessKeyTestResult', {
  endpoint: Type.String({ description: 'URL for S3 clients' }),
  ok: Type.Boolean({ description: 'Whether every step gave the result that the rights of the key imply' }),
  steps: Type.Array(KeyTrialStep),
});
export type KeyTrialResult = Static<typeof KeyTrialResult>;
