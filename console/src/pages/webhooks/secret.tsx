/** The secret that signs, and a new one in its place. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/code-line.tsx';
import { Loaded } from '../../parts/page.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { secretQuery } from './queries.ts';

const words = text.webhooks;
/** The old secret signs, too, while programs learn the new one. */
const OVERLAP_SECONDS = 86_400;

export function Secret({ id }: { id: string }) {
  const secret = useQuery(secretQuery(id));
  const queryClient = useQueryClient();
  const rotate = useMutation({
    mutationFn: (overlap: number) => cloud.webhooks.rotateSecret(id, { overlap_seconds: overlap }),
    onSuccess: (rotated) => queryClient.setQueryData(secretQuery(id).queryKey, rotated),
  });
  return (
    <Stack pb="sm">
      <Text size="sm">{words.secretLead}</Text>
      <Loaded query={secret}>
        {({ secret: value, previous_expires_at: ends }) => (
          <>
            <CodeLine value={value} label={words.copySecret} />
            {ends !== null && (
              <Text size="sm">
                {words.previousSigns} <When at={ends} />.
              </Text>
            )}
          </>
        )}
      </Loaded>
      <Text size="sm" c="dimmed">
        {words.rotateLead}
      </Text>
      <Group gap="xs">
        <Button
          variant="default"
          loading={rotate.isPending && rotate.variables > 0}
          onClick={() => rotate.mutate(OVERLAP_SECONDS)}
        >
          {words.rotate}
        </Button>
        <Button
          variant="default"
          color="red"
          loading={rotate.isPending && rotate.variables === 0}
          onClick={() => rotate.mutate(0)}
        >
          {words.rotateNow}
        </Button>
      </Group>
    </Stack>
  );
}
