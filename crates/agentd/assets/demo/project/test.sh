# Runs every test, and fails if one of them does.
failed=0
for test in tests/*.sh; do
    if sh "$test"; then echo "ok      $test"; else echo "FAILED  $test"; failed=1; fi
done
exit $failed
