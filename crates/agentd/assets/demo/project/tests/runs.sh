sh bin/greet Ada > /dev/null
