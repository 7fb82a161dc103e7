export const machines = {
  title: 'Machines',
  soon: 'These pages are on their way. The API has everything already.',
};
