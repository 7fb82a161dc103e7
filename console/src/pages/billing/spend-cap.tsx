/** The spend cap of the month: how much of it is spent, and the form that sets it. */
import { Button, Group, Progress, Stack, Text, TextInput, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Result } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { Refused } from '../../parts/forms/warning.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/say.ts';
import { When } from '../../parts/tables/when.tsx';
import { spendCapQuery } from '../../queries.ts';
import { spendText as words } from '../../texts/spend-text.ts';

type Cap = Result<'getSpendCap'>;

export function SpendCap() {
  const cap = useQuery(spendCapQuery);
  return (
    <section>
      <Title order={2}>{words.title}</Title>
      <Text c="dimmed" size="sm" mb="sm" maw={640}>
        {words.lead}
      </Text>
      <Loaded query={cap}>
        {(found) => (
          <Stack gap="md">
            <Spent cap={found} />
            <CapForm key={`${found.own_cap} ${found.warn_percent.join()}`} cap={found} />
          </Stack>
        )}
      </Loaded>
    </section>
  );
}

function Spent({ cap: { cap, spent, percent, expected_at, administrator_cap } }: { readonly cap: Cap }) {
  if (cap === null) return null;
  return (
    <div>
      <Text size="sm">{words.spent(sayCredits(spent), sayCredits(cap))}</Text>
      <Progress
        value={Math.min(100, Math.round(percent ?? 0))}
        size="sm"
        mt={4}
        maw={420}
        aria-label={words.spentLabel}
      />
      {expected_at !== null && (
        <Text size="sm" c="dimmed" mt={4}>
          {words.expected} <When at={expected_at} />
        </Text>
      )}
      {administrator_cap !== null && (
        <Text size="sm" c="dimmed" mt={4}>
          {words.byAdministrator(sayCredits(administrator_cap))}
        </Text>
      )}
    </div>
  );
}

function CapForm({ cap: { own_cap, warn_percent } }: { readonly cap: Cap }) {
  const form = useCloudForm({
    values: { cap: own_cap === null ? '' : String(own_cap), warn_percent: warn_percent.join(', ') },
    send: (values) => cloud.setSpendCap(changeOf(values)),
    invalidates: [spendCapQuery],
  });
  return (
    <form onSubmit={form.submit}>
      <Stack gap="sm">
        <Group align="flex-start">
          <TextInput
            label={words.cap}
            description={words.capLead}
            inputMode="decimal"
            w={200}
            {...form.text('cap')}
          />
          <TextInput
            label={words.warn}
            description={words.warnLead}
            inputMode="numeric"
            maw={420}
            {...form.text('warn_percent')}
          />
        </Group>
        <Refused {...form.refusal} />
        <Group>
          <Button type="submit" variant="default" loading={form.isBusy}>
            {words.save}
          </Button>
        </Group>
        <CallSample operation="setSpendCap" args={[changeOf(form.values)]} />
      </Stack>
    </form>
  );
}

/** Text that is not a number is sent unchanged, and the server says what is wrong with it. */
function changeOf({ cap, warn_percent }: { readonly cap: string; readonly warn_percent: string }) {
  const percents = warn_percent.split(/[\s,;%]+/).filter((one) => one !== '');
  const number = (text: string) =>
    Number.isFinite(Number(text)) ? Number(text) : (text as unknown as number);
  return {
    cap: cap.trim() === '' ? null : number(cap.trim().replace(',', '.')),
    warn_percent: percents.map(number),
  };
}
